// The process in which mutated model folders are loaded; started by model-folders.ts.
import { serve } from './fuzz-session';
import { modelFolderTarget } from './model-folder-target';

serve([modelFolderTarget]);
