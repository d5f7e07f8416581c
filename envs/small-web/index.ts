// A small web that the model browses with tools: open a page, follow a link, fill in a field, submit the form. The pages
// are drawn for each episode, and served on this machine (server.ts) to a text browser (text-browser.ts). Two kinds of
// tasks: a question whose answer is on a page two links away, and an order that needs facts from several pages. The
// reward is 1 for the right answer or the right order. What an episode shows depends on seed and actions only.
import { z } from 'zod';
import { defineEnvironment, type Action } from '../api/environment';
import { Pcg64 } from '../api/random/pcg64';
import { callAction } from '../api/tools/call-action';
import { defineTool, ToolError } from '../api/tools/tool';
import { siteServer, type ServedSite } from './server';
import { drawSite, orderFields, orderPath, pathOf, type Site } from './site';
import { TextBrowser } from './text-browser';

const kinds = ['question', 'order'] as const;
const config = z.strictObject({
  kinds: z
    .array(z.enum(kinds))
    .min(1)
    .default([...kinds])
    .describe('kinds of tasks: question asks for a fact, order asks for an order in the shop'),
  size: z.int().min(3).max(10).default(5).describe('number of people, and of articles'),
});

const longestField = 100;

interface Task {
  text: string;
  answer?: string;
  /** The right order; undefined if the task is a question. */
  order?: Record<string, string>;
  /** Paths of the pages that a solution opens, in order. */
  route: string[];
}

function drawTask(random: Pcg64, kind: (typeof kinds)[number], { people, articles }: Site): Task {
  const person = people[random.integers(0, people.length)];
  if (kind === 'question') {
    const friend = people.find(({ name }) => name === person.friend)!;
    const route = [pathOf('people', person.name), pathOf('people', friend.name)];
    return { text: `In which city does the best friend of ${person.name} live?`, answer: friend.city, route };
  }
  const article = articles[random.integers(0, articles.length)];
  const count = String(random.integers(1, 10));
  return {
    text: `Order ${count} of the article ${article.name}, to be sent to the city where ${person.name} lives.`,
    order: { code: article.code, count, city: person.city },
    route: [pathOf('shop', article.name), pathOf('people', person.name), orderPath],
  };
}

export default defineEnvironment({
  name: 'small_web',
  config,
  instruction: 'Solve the task on the web site. Its start page is /.',

  create({ kinds: asked, size }) {
    let served: ServedSite | undefined;
    let browser: TextBrowser;
    let task: Task;
    let seen = new Set<string>();
    let observation = '';
    let outcome: 'open' | 'right' | 'wrong' = 'open';

    /** Opens a page that exists, and returns it as the model sees it. */
    const show = async (path: string, signal?: AbortSignal): Promise<string> => {
      if (!(await browser.open(path, signal)))
        throw new ToolError(`there is no page ${JSON.stringify(path.slice(0, longestField))}`);
      seen.add(browser.path);
      return browser.text;
    };

    return {
      tools: {
        open: defineTool({
          description: 'Opens the page with a path.',
          parameters: z.strictObject({ path: z.string() }),
          run: ({ path }, { signal }) => show(path.startsWith('/') ? path : `/${path}`, signal),
        }),
        follow: defineTool({
          description: 'Follows the link with a number on the present page.',
          parameters: z.strictObject({ link: z.int() }),
          run({ link }, { signal }) {
            const { links } = browser.page;
            if (!links[link - 1]) throw new ToolError(`this page has the links 1 to ${links.length}`);
            return show(links[link - 1].path, signal);
          },
        }),
        fill: defineTool({
          description: 'Fills in a field of the form on the present page.',
          parameters: z.strictObject({ field: z.string(), text: z.string().max(longestField) }),
          run({ field, text }) {
            const fields = browser.page.fields ?? [];
            if (!fields.includes(field))
              throw new ToolError(fields.length > 0 ? `the fields are ${fields.join(', ')}` : 'this page has no form');
            browser.filled[field] = text.trim();
          },
        }),
        submit: defineTool({
          description: 'Submits the form on the present page.',
          parameters: z.strictObject({}),
          run(_, { signal }) {
            const empty = browser.page.fields?.filter(field => !browser.filled[field]);
            if (!empty) throw new ToolError('this page has no form');
            if (empty.length > 0) throw new ToolError(`fill in ${empty.join(', ')} first`);
            return browser.submit(signal);
          },
        }),
      },

      /** An order ends the episode: there is only one. */
      afterCalls() {
        const order = served?.order;
        if (outcome === 'open' && order) {
          const right = task.order && orderFields.every(field => order[field] === task.order![field]);
          outcome = right ? 'right' : 'wrong';
        }
        const success = outcome === 'right';
        return outcome === 'open' ? {} : { reward: success ? 1 : 0, terminated: true, info: { success } };
      },

      async reset({ seed }) {
        served?.close();
        const random = new Pcg64(seed);
        const site = drawSite(random, size);
        task = drawTask(random, asked[random.integers(0, asked.length)], site);
        served = (await siteServer()).open(site.pages);
        browser = new TextBrowser(served.address);
        [seen, outcome] = [new Set(), 'open'];
        observation = `${task.text}\n${await show('/')}`;
        return { observation };
      },

      step(action) {
        if (outcome !== 'open') throw new Error('The episode is over.');
        const success = task.answer !== undefined && String(action).trim().toLowerCase() === task.answer.toLowerCase();
        outcome = success ? 'right' : 'wrong';
        observation = success ? 'Right.' : 'Wrong.';
        const info = { action_is_valid: true, action_is_effective: success, success };
        return { observation, reward: success ? 1 : 0, terminated: true, truncated: false, info };
      },

      render: () => observation,
      close: () => served?.close(),

      solve(): Action[] {
        if (outcome !== 'open') return [];
        const call = (name: string, args: Record<string, unknown>) => callAction([{ name, arguments: args }]);
        const isLast = (to: string) => to === task.route.at(-1);
        const left = task.route.filter(to => !seen.has(to) || (isLast(to) && task.order && browser.path !== to));
        const opens = left.map(to => call('open', { path: to }));
        if (!task.order) return [...opens, task.answer!];
        const fills = orderFields.map(field => ({ name: 'fill', arguments: { field, text: task.order![field] } }));
        return [...opens, callAction([...fills, { name: 'submit', arguments: {} }])];
      },
    };
  },
});
