// Entry point of the Sweep page.
import '../shared/base.css';
import './sweep.css';
import { copyPlainNumbers } from '../shared/format';
import { connectHost } from '../shared/host';
import { registerToolkit } from '../shared/toolkit';
import { startSweepPage } from './page';

registerToolkit();
copyPlainNumbers(document);
startSweepPage(connectHost(), document.getElementById('app')!);
