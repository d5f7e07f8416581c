// Entry point of the Live page.
import '../shared/base.css';
import './live.css';
import { copyPlainNumbers } from '../shared/format';
import { connectHost } from '../shared/host';
import { registerToolkit } from '../shared/toolkit';
import { startLive } from './page';

registerToolkit();
copyPlainNumbers(document);
startLive(connectHost(), document.getElementById('app')!);
