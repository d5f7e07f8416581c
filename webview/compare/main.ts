// Entry point of the Compare page.
import '../shared/base.css';
import '../dashboard/dashboard.css';
import './compare.css';
import './sweep/sweep.css';
import { chartPlotter } from '../charts/plot';
import { copyPlainNumbers } from '../shared/format';
import { connectHost } from '../shared/host';
import { registerToolkit } from '../shared/toolkit';
import { startCompare } from './page';

registerToolkit();
copyPlainNumbers(document);
startCompare(connectHost(), document.getElementById('app')!, chartPlotter);
