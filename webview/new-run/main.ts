// Entry point of the New Run page.
import '../shared/base.css';
import './new-run.css';
import { connectHost } from '../shared/host';
import { registerToolkit } from '../shared/toolkit';
import { startNewRun } from './page';

registerToolkit();
startNewRun(connectHost(), document.getElementById('app')!);
