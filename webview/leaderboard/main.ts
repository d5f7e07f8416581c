// Entry point of the Leaderboard page.
import '../shared/base.css';
import './leaderboard.css';
import { connectHost } from '../shared/host';
import { registerToolkit } from '../shared/toolkit';
import { startLeaderboard } from './page';

registerToolkit();
startLeaderboard(connectHost(), document.getElementById('app')!);
