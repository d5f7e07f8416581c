// The process in which mutated model folders are loaded (model-folders.ts starts it).
import { serve } from './fuzz-sitting';
import { modelFolderTarget } from './model-folder-target';

serve([modelFolderTarget]);
