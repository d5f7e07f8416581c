// Entry point of the Timeline page.
import '../shared/base.css';
import './timeline.css';
import { copyPlainNumbers } from '../shared/format';
import { connectHost } from '../shared/host';
import { registerToolkit } from '../shared/toolkit';
import { startTimeline } from './page';

registerToolkit();
copyPlainNumbers(document);
startTimeline(connectHost(), document.getElementById('app')!);
