// Collects the facts that a run's manifest records about the model, and checks the model before the run is created. For
// a model in a folder, everything is checked except the values of the weights. For a hub model, only configuration and
// tokenizer are checked. Its weights need not be downloaded, because the hub's listing contains their checksums.
import type { Manifest } from '../../run-data/run-manifest';
import { UserError } from '../../common/user-error';
import { modelSource } from '../../trainer/config/model-path';
import { askedForTeacher, teacherSource } from '../../trainer/distillation/teacher-source';
import { installation } from '../../node/installation';
import { checksumTogether, isWeights, modelChecksum } from '../../models/weights/model-checksum';
import { elements, parameterSpecs } from '../../models/decoder/decoder-config';
import {
  checkModelFolder,
  readDecoderConfig,
  readTextShape,
  readTokenizerFor,
} from '../../models/weights/model-folder';
import type { RunConfig } from '../../trainer/config/schema';
import type { HubModel } from '../../hub/hub-call';
import { fetchHubTexts, findHubModel, withSmallFiles } from '../../hub/hub-model';

export interface ModelFacts {
  model: Manifest['model'];
  /** Maximum tokens of an episode. */
  maxPositions: number;
}

/** Checks a model and returns its facts. Throws a ConfigError or UserError if the model cannot be used. */
export async function modelFacts(
  path: string,
  workspace: string,
  engine: RunConfig['workbench']['engine'] = 'local',
): Promise<ModelFacts> {
  const source = modelSource(path, { workspace, modelFolders: [installation.models] });
  if (engine === 'tinker') {
    if ('folder' in source) return tokenizerFacts(path, source.folder);
    const { folder, commit: revision } = await fetchHubTexts(source.hub);
    const own = tokenizerFacts(path, folder);
    return { ...own, model: { ...own.model, revision } };
  }
  return 'folder' in source ? folderFacts(path, source.folder) : hubFacts(path, source.hub);
}

/**
 * Checks the teacher's model and returns its facts.
 * @throws ConfigError or UserError if the model cannot be used
 */
export async function teacherFacts(teacher: string, workspace: string): Promise<Manifest['model']> {
  const source = teacherSource(teacher, workspace);
  const facts =
    'folder' in source ? folderFacts(teacher, source.folder) : hubFacts(teacher, source.hub, askedForTeacher);
  return (await facts).model;
}

/**
 * Returns the facts about a model whose weights are on a server. The folder contains only the tokenizer and
 * config.json.
 */
function tokenizerFacts(path: string, folder: string): ModelFacts {
  const { vocabSize, maxPositions } = readTextShape(folder);
  readTokenizerFor(folder, { vocabSize });
  return { model: { path, sha256: '', parameters: 0 }, maxPositions };
}

async function folderFacts(path: string, folder: string): Promise<ModelFacts> {
  const { parameters, maxPositions } = await checkModelFolder(folder);
  return { model: { path, sha256: await modelChecksum(folder, true), parameters }, maxPositions };
}

async function hubFacts(path: string, model: HubModel, asked = 'config: model_path'): Promise<ModelFacts> {
  const facts = await findHubModel(model);
  const { commit: revision, folder, files } = facts;
  if (files.some(({ name }) => name === 'adapter_config.json'))
    throw new UserError(
      `${asked} is ${JSON.stringify(path)}, which is an adapter, not a model: give the adapter’s base model`,
    );
  if (folder !== null) {
    const own = await folderFacts(path, folder);
    return { ...own, model: { ...own.model, revision } };
  }
  const { parameters, maxPositions } = await withSmallFiles(facts, async small => {
    try {
      const config = readDecoderConfig(small);
      readTokenizerFor(small, config);
      const parameters = parameterSpecs(config).reduce((sum, { dims }) => sum + elements(dims), 0);
      return { parameters, maxPositions: config.maxPositions };
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      throw new UserError(error.message.replaceAll(small, path), { cause: error }); // `small` is a temporary folder
    }
  });
  const sums = files.filter(({ name }) => isWeights(name)).map(({ name, etag }) => ({ name, sha256: etag }));
  return { model: { path, sha256: checksumTogether(sums), parameters, revision }, maxPositions };
}
