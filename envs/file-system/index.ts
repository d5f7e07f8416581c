// Tasks in a file system that the model sees only through tools: find a file, read a value, change a value, remove
// files. The files are in memory, so that no call can touch the machine's files. The reward is 1 if the answer is right
// and the files are as the task demands, and 0 otherwise.
import { z } from 'zod';
import { defineEnvironment } from '../api/environment';
import { Pcg64 } from '../api/random/pcg64';
import { defineTool } from '../api/tools/tool';
import { MemoryFiles } from './memory-files';
import { done, drawTask, kinds, type Task } from './tasks';

const config = z.strictObject({
  kinds: z
    .array(z.enum(kinds))
    .min(1)
    .default([...kinds])
    .describe('kinds of tasks: find a file, read a value, edit a value, tidy up'),
  files: z.int().min(2).max(24).default(8).describe('number of files'),
});

const path = z.string().describe('absolute path');

export default defineEnvironment({
  name: 'file_system',
  config,
  instruction: 'Work with the files through your tools. The root folder is /.',

  create({ kinds: asked, files: count }) {
    let task: Task;
    let files = new MemoryFiles();
    let before = files;
    let observation = '';
    let over = false;
    /** Whether the files were read or searched, after which the solver knows the answer. */
    let looked = false;
    const look = (text: string): string => {
      looked = true;
      return text;
    };

    return {
      tools: {
        list: defineTool({
          description: 'Lists a folder.',
          parameters: z.strictObject({ path }),
          parallel: true,
          run: args => files.list(args.path).join('\n'),
        }),
        read: defineTool({
          description: 'Returns the text of a file.',
          parameters: z.strictObject({ path }),
          parallel: true,
          run: args => look(files.read(args.path)),
        }),
        search: defineTool({
          description: 'Returns the paths of the files that contain a text.',
          parameters: z.strictObject({ text: z.string().min(1) }),
          parallel: true,
          run: ({ text }) => look(files.search(text).join('\n') || 'no file contains it'),
        }),
        write: defineTool({
          description: 'Writes a file.',
          parameters: z.strictObject({ path, text: z.string() }),
          run: args => files.write(args.path, args.text),
        }),
        move: defineTool({
          description: 'Moves a file.',
          parameters: z.strictObject({ from: z.string(), to: z.string() }),
          run: ({ from, to }) => files.move(from, to),
        }),
        remove: defineTool({
          description: 'Removes a file.',
          parameters: z.strictObject({ path }),
          run: args => files.remove(args.path),
        }),
      },

      reset({ seed }) {
        const random = new Pcg64(seed);
        task = drawTask(random, asked[random.integers(0, asked.length)], count);
        files = new MemoryFiles(task.files.entries());
        before = task.files;
        observation = task.text;
        over = looked = false;
        return { observation };
      },

      step(action) {
        if (over) throw new Error('The episode is over.');
        over = true;
        const answered = task.answer === undefined || String(action).trim() === task.answer;
        const success = answered && files.equals(task.expected ?? before);
        observation = success ? 'Right.' : 'Wrong.';
        const info = { action_is_valid: true, action_is_effective: success, success };
        return { observation, reward: success ? 1 : 0, terminated: true, truncated: false, info };
      },

      render: () => observation,
      solve() {
        if (over) return [];
        const knows = task.answer !== undefined && looked;
        return [...(knows ? [] : task.calls(files)), task.answer ?? done];
      },
    };
  },
});
