// Loads a model whose weights are all trained and in memory, a model with trained adapters over a base that is mapped
// from its files, or a mapped model without trained weights. All files are read and checked before any session is
// created, so a failed load leaves nothing open.
import type { LoadOptions } from '../engine/load-options';
import type { LoadedModel } from '../engine/load-options';
import { RandomStream } from '../engine/sampling/random-stream';
import type { SessionOptions } from '../engine/session/session';
import { UserError } from '../common/user-error';
import { Critic, criticSpecs, criticWeights, initializeValueHead, valueHeadSpec } from './decoder/critic';
import { openBank } from './weights/device-parameters';
import { Generator } from './generation/generator';
import { initializeLora, loraSpecs } from './adapters/lora';
import { mapDecoder } from './decoder/mapped-decoder';
import { readDecoder, readEncoderConfig } from './weights/model-folder';
import { adaptedNetwork, frozenNetwork, trainedNetwork } from './decoder/networks';
import { HostParameters } from './weights/parameter-bank';
import { readAdapter } from './adapters/peft-adapter';
import { Policy } from './policy';
import type { Network } from './graphs/policy-graphs';
import { quantizedNetwork } from './weights/quantized-base';
import type { EncoderConfig } from './vision/encoder-config';
import { openPictures } from './vision/open-pictures';
import type { OpenPictures } from './vision/open-pictures';
import { isOfDecoder } from './vision/stored-names';
import { readTrainedModel } from './vision/vision-folder';
import { Weights } from './weights/weights';

/** Policies and properties of a loaded model. */
export interface LoadedPolicies extends OpenPictures {
  actor: Policy;
  generator: Generator;
  reference?: Policy;
  critic?: Critic;
  model: Omit<LoadedModel, 'provider' | 'deviceCheck'>;
}

type Decode = (ids: readonly number[]) => string;

/**
 * Loads a model whose weights are all trained, those of a vision encoder if `trainsEncoder` is true. The weights of the
 * reference policy are frozen and mapped from the files in `referenceFolder`.
 */
export async function loadTrained(
  options: LoadOptions,
  session: SessionOptions,
  decode: Decode,
): Promise<LoadedPolicies> {
  const { modelFolder, referenceFolder, checkpointed } = options;
  if (options.rolloutQuantization !== 'none' || options.baseQuantization !== 'none')
    throw new UserError(
      'config: workbench.rollout_quantization and workbench.base_quantization quantise a frozen base, but all weights are trained: set lora.rank above 0, or set both keys to none',
    );
  const encoder = trainedEncoderOf(options);
  const { config, weights } = encoder ? await readTrainedModel(modelFolder) : await readDecoder(modelFolder);
  const within = (network: Network): Network => withinOptions(network, options);
  const reference = referenceFolder === null ? undefined : await mapDecoder(referenceFolder);
  // `tiedHead` is not compared. The files of the reference policy may contain a separate tensor for a tied head; an
  // older checkpoint of the same model lacks this tensor.
  if (reference && JSON.stringify({ ...reference.config, tiedHead: config.tiedHead }) !== JSON.stringify(config))
    throw new UserError(
      `${referenceFolder}: the architecture of the reference policy differs from the policy's: use weights of the policy's model`,
    );
  const bank = await openBank(weights, session, options.moments?.actor);
  const network = within(trainedNetwork(config));
  const policy = { ...session, checkpointed };
  const criticBank =
    options.critic &&
    (await openBank(criticWeights(config, weights, new RandomStream(options.seed)), session, options.moments?.critic));
  return {
    actor: new Policy(network, bank, policy),
    generator: new Generator(network, bank, { ...session, decode, layOut: laysOut(weights, session) }),
    reference:
      reference && new Policy(within(frozenNetwork(reference.config, reference)), withoutParameters(session), session),
    critic: criticBank
      ? new Critic(within(trainedNetwork(config, criticSpecs(config))), criticBank, policy)
      : undefined,
    ...(await openPictures(options, session, encoder && { bank, checkpointed })),
    model: {
      parameters: weights.count,
      trained: weights.count,
      maxPositions: config.maxPositions,
      vocabSize: config.vocabSize,
      lora: null,
    },
  };
}

/**
 * Loads a model with trained adapters. The base stays in its files and is the reference policy. The critic shares the
 * base, and has separate adapters and a value head.
 */
export async function loadAdapted(
  options: LoadOptions,
  session: SessionOptions,
  decode: Decode,
): Promise<LoadedPolicies> {
  const { modelFolder, adapterFolder, checkpointed } = options;
  const base = await mapDecoder(modelFolder);
  const { config } = base;
  const stream = new RandomStream(options.seed);
  const readable = { config, folder: modelFolder, encoder: readEncoderConfig(modelFolder) };
  const given = adapterFolder === null ? null : await readAdapter(adapterFolder, readable);
  if (given?.adaptsEncoder && options.trainsEncoder === false)
    throw new UserError(
      `config: actor_rollout_ref.actor.freeze_vision_tower is true, but the adapter in ${adapterFolder} changes the vision encoder: set it to false, or merge the adapter with ragen export and train the merged model`,
    );
  const lora = given?.lora ?? options.lora!;
  const encoder = given ? (given.adaptsEncoder ? readable.encoder : undefined) : trainedEncoderOf(options);
  const factors = given?.factors ?? new Weights(loraSpecs(config, lora, encoder));
  if (!given) initializeLora(factors, stream);
  const adaptsEncoder = factors.specs.some(({ name }) => !isOfDecoder(name));
  const bank = await openBank(factors, session, options.moments?.actor);
  const within = (network: Network): Network => withinOptions(network, options);
  const unquantizedBase = frozenNetwork(config, base);
  const bytes =
    options.rolloutQuantization === 'int8' || options.baseQuantization === 'int8'
      ? await quantizedNetwork(base, options.cacheFolder)
      : unquantizedBase;
  const trainingBase = options.baseQuantization === 'int8' ? bytes : unquantizedBase;
  const rolloutBase =
    options.rolloutQuantization === 'int8'
      ? { ...bytes, plan: { ...bytes.plan, int8Products: true } }
      : unquantizedBase;
  const policy = { ...session, checkpointed };
  const value = valueHeadSpec(config);
  const criticFactors = new Weights([
    ...loraSpecs(config, lora, encoder).filter(({ name }) => isOfDecoder(name)),
    value,
  ]);
  if (options.critic) {
    initializeLora(criticFactors, stream);
    initializeValueHead(criticFactors, stream);
  }
  const rollouts = adaptedNetwork(rolloutBase, { ...lora, dropout: 0 }, [], encoder);
  return {
    actor: new Policy(within(adaptedNetwork(trainingBase, lora, [], encoder)), bank, policy),
    generator: new Generator(within(rollouts), bank, { ...session, prepack: true, decode }),
    reference:
      options.referenceFolder === null
        ? undefined
        : new Policy(within(trainingBase), withoutParameters(session), session),
    critic: options.critic
      ? new Critic(
          within(adaptedNetwork(trainingBase, { ...lora, dropout: 0 }, [value], encoder)),
          await openBank(criticFactors, session, options.moments?.critic),
          policy,
        )
      : undefined,
    ...(await openPictures(options, session, adaptsEncoder ? { bank, lora, checkpointed } : undefined)),
    model: {
      parameters: base.parameters,
      trained: factors.count,
      maxPositions: config.maxPositions,
      vocabSize: config.vocabSize,
      lora,
    },
  };
}

/** Loads a model without trained weights, which stays in its files. */
export async function loadFrozen(
  options: LoadOptions,
  session: SessionOptions,
  decode: Decode,
): Promise<LoadedPolicies> {
  const base = await mapDecoder(options.modelFolder);
  const { maxPositions, vocabSize } = base.config;
  const network = withinOptions(frozenNetwork(base.config, base), options);
  const bank = withoutParameters(session);
  return {
    actor: new Policy(network, bank, session),
    generator: new Generator(network, bank, { ...session, decode }),
    ...(await openPictures(options, session)),
    model: { parameters: base.parameters, trained: 0, maxPositions, vocabSize, lora: null },
  };
}

/** Returns the configuration of the vision encoder if it is trained too; undefined for models that read text only. */
const trainedEncoderOf = ({ modelFolder, trainsEncoder }: LoadOptions): EncoderConfig | undefined =>
  trainsEncoder ? readEncoderConfig(modelFolder) : undefined;

/** Returns the network with the precision and maximum positions from the options. */
const withinOptions = (network: Network, { maxPositions, precision }: LoadOptions): Network => ({
  ...network,
  plan: { ...network.plan, products: precision },
  maxPositions: Math.min(maxPositions ?? Infinity, network.config.maxPositions),
});

/**
 * Maximum bytes of a model whose weights are prepacked for rollouts. Prepacking is repeated after each change of the
 * weights and temporarily takes three times their memory.
 */
export const laidOutBytes = 2 ** 28;

const laysOut = ({ flat }: Weights, { provider = 'cpu' }: SessionOptions): boolean =>
  provider === 'cpu' && flat.byteLength <= laidOutBytes;

/** Returns the empty parameter bank of a network without trained parameters. */
const withoutParameters = (session: SessionOptions): HostParameters => new HostParameters(new Weights([]), session);
