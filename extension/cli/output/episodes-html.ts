// Renders episodes as one HTML file without scripts, for any browser: a heading per episode, then state, response and
// reward of each turn.
import type { Episode } from '../../run-data/episode';
import { escapeText } from '../../run-data/report/report-html';

const style = `body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}
pre{white-space:pre-wrap;padding:.6rem .8rem;border-radius:.4rem;background:color-mix(in srgb,currentColor 7%,transparent);margin:.3rem 0}
pre.answer{border-left:.25rem solid #3b82f6}
details{margin:.4rem 0;border-top:1px solid color-mix(in srgb,currentColor 20%,transparent);padding-top:.4rem}
summary{cursor:pointer;font-weight:600}
.reward{opacity:.75;margin:0 0 .8rem}`;

/** Returns the HTML document for episodes of a run called `name`. */
export function episodesHtml(name: string, episodes: readonly Episode[]): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeText(name)}: episodes</title><style>${style}</style></head>
<body>
<h1>${escapeText(name)}</h1>
<p>${episodes.length} episodes</p>
${episodes.map(article).join('\n')}
</body>
</html>
`;
}

function article(episode: Episode): string {
  const { id, tag, seed, success, score, turns, final_state, error } = episode;
  return `<details${turns.length > 0 ? '' : ' open'}>
<summary>${success === null ? '–' : success ? '✓' : '✗'} ${escapeText(id)} · ${escapeText(tag)} · seed ${seed} · score ${score}</summary>
${turns.map(({ turn, role, state, raw, reward }) => `<h3>Turn ${turn}${role === undefined ? '' : `, ${escapeText(role)}`}</h3>\n<pre>${escapeText(state)}</pre>\n<pre class="answer">${escapeText(raw)}</pre>\n<p class="reward">Reward ${reward}</p>`).join('\n')}
<h3>End</h3>
<pre>${escapeText(final_state)}</pre>${error ? `\n<p>${escapeText(error)}</p>` : ''}
</details>`;
}
