// Entry point of the Query page.
import '../shared/base.css';
import './query.css';
import { chartPlotter } from '../charts/plot';
import { connectHost } from '../shared/host';
import { registerToolkit } from '../shared/toolkit';
import { startQuery } from './page';

registerToolkit();
startQuery(connectHost(), document.getElementById('app')!, chartPlotter);
