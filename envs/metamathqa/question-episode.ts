// An episode with one question. A right answer ends the episode; each wrong answer halves the reward that remains. The
// seed selects the row of the data set by CPython's `random.randint`, as in RAGEN.
import type { DataSet, Row } from '../api/data-set';
import type { Environment } from '../api/environment';
import { PythonRandom } from '../api/random/python-random';

export interface Question {
  text: string;
  /** Null if the data set has no answer; every answer is then wrong. */
  answer: string | null;
}

export interface Verdict {
  right: boolean;
  /** Whether the answer has the expected format. */
  valid: boolean;
}

export interface QuestionSource {
  open(): Promise<DataSet>;
  /**
   * @throws MissingDependency if the row lacks a required column
   */
  question(row: Row): Question;
  judge(given: string, answer: string | null): Verdict;
  /** If true, infos also contain `is_valid`, the key of RAGEN's static environment. */
  namesValidity?: boolean;
}

export function questionEpisode({ open, question, judge, namesValidity }: QuestionSource): Environment {
  let asked: Question;
  let observation = '';
  let wrong = 0;
  let over = false;
  return {
    async reset({ seed }) {
      const rows = await open();
      asked = question(await rows.row(new PythonRandom(seed).randint(0, rows.length - 1)));
      observation = asked.text;
      wrong = 0;
      over = false;
      return { observation };
    },

    step(action) {
      const { right, valid } = judge(String(action), asked.answer);
      const reward = right && !over ? 0.5 ** wrong : 0;
      if (!over) {
        if (right) over = true;
        else wrong++;
        observation = right ? 'Correct!' : 'Incorrect. Please think again.';
      }
      const info = { action_is_valid: valid, success: over, ...(namesValidity && { is_valid: valid }) };
      return { observation, reward, terminated: over, truncated: false, info };
    },

    render: () => observation,
    solve() {
      if (over) return [];
      return asked.answer !== null && judge(asked.answer, asked.answer).right ? [asked.answer] : undefined;
    },
  };
}
