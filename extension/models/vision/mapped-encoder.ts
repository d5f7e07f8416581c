// The vision encoder of a model folder, left in its files: onnxruntime maps its tensors, as it maps those of a frozen
// decoder.
import { openVisionModel } from './vision-folder';
import { mapTensors } from '../decoder/mapped-decoder';
import { elements } from '../decoder/decoder-config';
import { mappedSource } from '../decoder/networks';
import type { EncoderNetwork } from './encoder-graphs';
import type { VisionConfig } from './vision-config';

export interface MappedEncoder {
  config: VisionConfig;
  network: EncoderNetwork;
  parameters: number;
}

/** Opens the encoder of a folder without loading its weights into memory. Throws UserErrors. */
export async function mapEncoder(folder: string): Promise<MappedEncoder> {
  const { config, files, encoderParameters: specs } = await openVisionModel(folder);
  try {
    const mapped = await mapTensors(folder, specs, files);
    return {
      config,
      network: {
        config: config.encoder,
        folder: mapped.folder,
        plan: { specs, source: mappedSource(mapped) },
      },
      parameters: specs.reduce((sum, { dims }) => sum + elements(dims), 0),
    };
  } finally {
    await files.close();
  }
}
