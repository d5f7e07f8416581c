// Renders the Query page: the SQL with its buttons, the state of the query, the chart and the table.
import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { live } from 'lit/directives/live.js';
import type { Plotter } from '../charts/plot';
import { button, dropdown } from '../components/controls';
import { notice, skeleton } from '../components/notice';
import { counted, formatDuration } from '../shared/format';
import type { QueryActions } from './actions';
import { examples } from './examples';
import { resultChart } from './result-chart';
import { resultTable } from './result-table';
import type { QueryState } from './state';

export function queryView(state: QueryState, actions: QueryActions, plotter: Plotter): TemplateResult {
  const { context, error, result, settings, theme } = state;
  if (!context)
    return error === null
      ? skeleton('skeleton-query', 2, 'Loading the page')
      : notice({
          kind: 'error',
          title: 'The page could not be loaded',
          text: error,
          action: { label: 'Try again', run: actions.load },
        });
  return html`<main class="query">
    ${editor(state, actions)}
    <p class="muted query-status" role="status">${statusOf(state)}</p>
    ${error === null ? nothing : html`<p class="query-error" role="alert">${error.replace(/^query: /, '')}</p>`}
    ${result?.notes.map(note => html`<p class="muted query-note">${note}</p>`) ?? nothing}
    ${
      result
        ? html`${guard([result, settings.chart, theme], () => resultChart(result, settings.chart, theme, actions, plotter))}
          ${guard([result], () => resultTable(result))}`
        : nothing
    }
  </main>`;
}

function editor({ context, running, result, settings }: QueryState, actions: QueryActions): TemplateResult {
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    actions.run();
  };
  const onInput = ({ currentTarget }: Event): void => actions.write((currentTarget as HTMLTextAreaElement).value);
  const choose = (title: string): void => {
    const example = examples.find(each => each.title === title);
    if (example) actions.write(example.sql);
  };
  const current = examples.find(({ sql }) => sql === settings.sql)?.title ?? '';
  return html`<header class="query-editor">
    <div class="query-bar">
      <h1>Query the runs of ${context!.folder}</h1>
      ${dropdown({
        label: 'Examples',
        choices: [['', 'Examples'], ...examples.map(({ title }): [string, string] => [title, title])],
        value: current,
        onChange: choose,
      })}
    </div>
    <textarea
      aria-label="SQL"
      aria-describedby="query-help"
      spellcheck="false"
      rows=${Math.min(16, Math.max(5, settings.sql.split('\n').length + 1))}
      .value=${live(settings.sql)}
      @input=${onInput}
      @keydown=${onKey}
    ></textarea>
    <div class="query-bar">
      ${
        running
          ? button({ label: 'Cancel', icon: 'stop', onClick: actions.cancel })
          : button({
              label: 'Run',
              icon: 'play',
              primary: true,
              title: 'Run the query ( Ctrl+Enter )',
              disabled: settings.sql.trim() === '' ? 'soft' : false,
              onClick: actions.run,
            })
      }
      ${button({
        label: 'Save as CSV',
        icon: 'export',
        disabled: result === null ? 'soft' : false,
        onClick: actions.save,
      })}
      <p class="muted" id="query-help"
        >One SELECT over the tables <code>runs</code>, <code>metrics</code>, <code>episodes</code>,
        <code>turns</code> and <code>events</code>. <code>DESCRIBE runs</code> lists columns.</p
      >
    </div>
  </header>`;
}

function statusOf({ running, result, cancelled, error }: QueryState): string {
  if (running) return 'Running…';
  if (cancelled) return 'Cancelled.';
  if (error !== null || !result) return '';
  const rows = result.truncated
    ? `The first ${counted(result.rows.length, 'row')}`
    : counted(result.rows.length, 'row');
  return `${rows} in ${formatDuration(result.seconds)}`;
}
