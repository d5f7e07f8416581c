// Entry point of the Dashboard page.
import '../shared/base.css';
import './dashboard.css';
import { copyPlainNumbers } from '../shared/format';
import { connectHost } from '../shared/host';
import { registerToolkit } from '../shared/toolkit';
import { startDashboard } from './page';
import { chartPlotter } from '../charts/plot';

registerToolkit();
copyPlainNumbers(document);
startDashboard(connectHost(), document.getElementById('app')!, chartPlotter);
