// Entry point of the Play page.
import '../shared/base.css';
import './play.css';
import { copyPlainNumbers } from '../shared/format';
import { connectHost } from '../shared/host';
import { registerToolkit } from '../shared/toolkit';
import { startPlay } from './page';

registerToolkit();
copyPlainNumbers(document);
startPlay(connectHost(), document.getElementById('app')!);
