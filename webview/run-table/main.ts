// Entry point of the run table.
import '../shared/base.css';
import './run-table.css';
import { copyPlainNumbers } from '../shared/format';
import { connectHost } from '../shared/host';
import { registerToolkit } from '../shared/toolkit';
import { startRunTable } from './page';

registerToolkit();
copyPlainNumbers(document);
startRunTable(connectHost(), document.getElementById('app')!);
