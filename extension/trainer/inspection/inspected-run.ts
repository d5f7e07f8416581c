// A run under inspection. Reads the run's folder without the run's lease, so a trainer may write to the folder at the
// same time. The list of checkpoints is therefore read anew in each call.
import { dirname, join } from 'node:path';
import { jsonOrNothing } from '../../common/json';
import { initialWeights } from '../../protocol/inspection';
import type { CheckpointChoice, EpisodeRef } from '../../protocol/inspection';
import { hasRunFile, namesInRunSync } from '../../node/read-run-file';
import { checkpointFolder, episodeFile, runFiles } from '../../run-data/run-file-names';
import { episodeSchema } from '../../run-data/episode';
import { keptEnvironmentSchema } from '../../run-data/environment-snapshot';
import type { Episode } from '../../run-data/episode';
import { UserError } from '../../common/user-error';
import type { RunConfig } from '../config/schema';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import { readTokenizer } from '../../models/weights/model-folder';
import { presentModelFolder } from '../run/run-model';
import { openCheckpoint, verifyCheckpoint } from '../store/checkpoint';
import { refuseForeign } from '../store/newest-checkpoint';
import type { StoredCheckpoint } from '../store/checkpoint';
import { readLines } from '../store/line-log';
import { RunFolder } from '../store/run-folder';
import { pixelLimits } from '../run/run-pictures';
import { presentConfig } from '../run/stored-config';
import { requireOwn, requireTrustedCode } from '../run/trusted-run';
import { keptCode } from '../store/environment-store';

/** Number of characters at the start of an episode's line that are searched for its id. */
const headLength = 200;

/**
 * Remedy if the inspected run was created by another version of RAGEN Workbench, whose runs this version cannot score.
 */
const otherVersion =
  'this version can neither score its tokens nor play a what-if; use the version that created the run, or view its recorded data';

export class InspectedRun {
  private model: Promise<string> | undefined;
  private reader: ChatTokenizer | undefined;

  private constructor(
    readonly folder: RunFolder,
    readonly config: RunConfig,
  ) {}

  /**
   * @throws UserError if the folder is not a run, another version created the run, or the run's model is behind an API
   */
  static open(path: string): InspectedRun {
    const folder = RunFolder.open(path);
    requireOwn(folder);
    folder.verifySeal();
    const config = presentConfig(folder, otherVersion);
    if (config.model_config !== null)
      throw new UserError(
        `run ${folder.id} was played by a model behind an API, which has no token ids: inspect a run of a local model`,
      );
    return new InspectedRun(folder, config);
  }

  /** The workspace's folder, the base for relative paths of the configuration. */
  get workspace(): string {
    return dirname(dirname(dirname(this.folder.path))); // <workspace>/.ragen/runs/<id>
  }

  /** Returns the path of the model folder from which the run started. */
  modelFolder(): Promise<string> {
    return (this.model ??= presentModelFolder(this.folder, this.workspace).catch((error: unknown) => {
      this.model = undefined; // the next call searches for the model again
      throw error;
    }));
  }

  async tokenizer(): Promise<ChatTokenizer> {
    const { apply_chat_template_kwargs: variables } = this.config.data;
    return (this.reader ??= readTokenizer(await this.modelFolder(), {
      variables,
      pixels: pixelLimits(this.config),
    }));
  }

  /** Returns all checkpoints, newest first; the last entry represents the initial weights. */
  checkpoints(): CheckpointChoice[] {
    const names = namesInRunSync(this.folder.path, runFiles.checkpoints);
    const found = names.flatMap(name => {
      const step = /^step-(\d{6,})$/.exec(name)?.[1];
      return step !== undefined && hasRunFile(this.folder.path, `${runFiles.checkpoints}/${name}/checkpoint.json`)
        ? [{ name, step: Number(step) }]
        : [];
    });
    return [...found.sort((a, b) => b.step - a.step), { name: initialWeights, step: 0 }];
  }

  /**
   * Returns the named checkpoint, by default the newest.
   * @throws UserError if no checkpoint has this name; the message lists the existing names
   */
  checkpoint(name?: string): CheckpointChoice {
    const all = this.checkpoints();
    const found = name === undefined ? all[0] : all.find(each => each.name === name);
    if (found) return found;
    throw new UserError(
      `run ${this.folder.id} has no checkpoint ${name}: use one of ${all.map(each => each.name).join(', ')}`,
    );
  }

  /**
   * Returns the checkpoint whose step is nearest to that of the weights that played an episode; of two equally near, the
   * earlier one. A step's training episodes are played before its update, its validation episodes after it.
   */
  nearestCheckpoint({ mode, step }: Pick<EpisodeRef, 'mode' | 'step'>): CheckpointChoice {
    const played = mode === 'val' ? step : step - 1;
    const distance = (each: CheckpointChoice): number => Math.abs(each.step - played);
    return this.checkpoints().reduce((best, each) => (distance(each) <= distance(best) ? each : best));
  }

  /** Opens and verifies the chosen checkpoint; returns null for the initial weights. */
  async open({ name, step }: CheckpointChoice): Promise<StoredCheckpoint | null> {
    if (name === initialWeights) return null;
    const checkpoint = await openCheckpoint(this.folder.file(checkpointFolder(step)));
    refuseForeign(checkpoint, this.folder.verifySeal());
    await verifyCheckpoint(checkpoint);
    return checkpoint;
  }

  /** Reads one episode. @throws UserError if the run's files do not contain the episode */
  episode(ref: Pick<EpisodeRef, 'mode' | 'step' | 'id'>): Episode {
    const name = episodeFile(ref);
    const marked = `"id":${JSON.stringify(ref.id)}`;
    for (const { text } of readLines(this.folder.file(name), 0, undefined, this.folder.path))
      if (text.slice(0, headLength).includes(marked)) return parsed(text, ref.id, name);
    throw new UserError(
      `run ${this.folder.id} has no episode ${ref.id} in ${name}: look for its id on the Episodes page`,
    );
  }

  /**
   * Returns the stored code of an environment version that a tag has used: the bundle, and the path of the
   * environment's source. Returns undefined if the run has stored no code of this version. The bundle is read only
   * once, so exactly the bytes that were checked for trust are returned.
   * @param accepted sha256 of files that the user has accepted for this request only
   * @throws UserError if the code is not trusted
   */
  keptEnvironment(
    { version, tag }: { version: string; tag: string },
    accepted: readonly string[],
  ): { bundle: string; source: string } | undefined {
    const kept = keptCode(this.folder, version, tag);
    if (!kept) return undefined;
    requireTrustedCode(this.folder, [kept.bundle, kept.about], accepted);
    const about = keptEnvironmentSchema.safeParse(jsonOrNothing(kept.about.bytes.toString('utf8'))).data;
    if (!about) throw new UserError(`store: ${kept.about.file} of run ${this.folder.id} is damaged: restore it`);
    const { root, entry } = about;
    return { bundle: kept.bundle.bytes.toString('utf8'), source: join(root, entry) };
  }
}

function parsed(line: string, id: string, file: string): Episode {
  try {
    return episodeSchema.parse(JSON.parse(line));
  } catch (error) {
    const [reason] = (error as Error).message.split('\n', 1);
    throw new UserError(`store: episode ${id} in ${file} is damaged (${reason}): choose another episode`);
  }
}
