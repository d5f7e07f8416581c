// Entry point of the Episodes page.
import '../shared/base.css';
import './episodes.css';
import './player/player.css';
import './heat/heat.css';
import { copyPlainNumbers } from '../shared/format';
import { connectHost } from '../shared/host';
import { registerToolkit } from '../shared/toolkit';
import { startEpisodes } from './page';

registerToolkit();
copyPlainNumbers(document);
startEpisodes(connectHost(), document.getElementById('app')!);
