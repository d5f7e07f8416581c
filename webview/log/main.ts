// Entry point of the Log page.
import '../shared/base.css';
import './log.css';
import { copyPlainNumbers } from '../shared/format';
import { connectHost } from '../shared/host';
import { registerToolkit } from '../shared/toolkit';
import { startLog } from './page';

registerToolkit();
copyPlainNumbers(document);
startLog(connectHost(), document.getElementById('app')!);
