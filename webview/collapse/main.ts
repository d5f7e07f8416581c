// Entry point of the Collapse page.
import '../shared/base.css';
import './collapse.css';
import { copyPlainNumbers } from '../shared/format';
import { connectHost } from '../shared/host';
import { registerToolkit } from '../shared/toolkit';
import { startCollapse } from './page';

registerToolkit();
copyPlainNumbers(document);
startCollapse(connectHost(), document.getElementById('app')!);
