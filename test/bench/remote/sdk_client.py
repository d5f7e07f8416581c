"""One side of client-comparison.mjs: the work of a round with the official Python SDK (package tinker), which SkyRL's
recipes use. Usage: sdk_client.py WORK.json; each line of standard input starts a round, whose seconds are printed as JSON.
"""

import asyncio
import json
import random
import sys
import time

import tinker
from tinker import types


async def main() -> None:
    with open(sys.argv[1]) as file:
        work = json.load(file)
    service = tinker.ServiceClient(base_url=work["url"], api_key="tml-benchmark")
    capabilities = await service.get_server_capabilities_async()
    base = capabilities.supported_models[0].model_name
    training = await service.create_lora_training_client_async(
        base_model=base, rank=work["rank"], seed=1, train_unembed=False
    )
    print(json.dumps({"about": f"tinker {tinker.__version__}, Python {sys.version.split()[0]}"}), flush=True)
    stream = random.Random(1)
    adam = types.AdamParams(learning_rate=1e-4, beta1=0.9, beta2=0.999, eps=1e-8)

    def tensor(data: list, dtype: str) -> types.TensorData:
        return types.TensorData(data=data, dtype=dtype, shape=[len(data)])

    def datum(ids: list[int], prompt: int, logprobs: list[float], advantage: float) -> types.Datum:
        count = len(ids) - 1
        zeros = [0.0] * (prompt - 1)
        return types.Datum(
            model_input=types.ModelInput.from_ints(ids[:-1]),
            loss_fn_inputs={
                "target_tokens": tensor(ids[1:], "int64"),
                "weights": tensor(zeros + [1.0] * (count - prompt + 1), "float32"),
                "logprobs": tensor(zeros + logprobs, "float32"),
                "advantages": tensor(zeros + [advantage] * (count - prompt + 1), "float32"),
            },
        )

    async def play() -> None:
        sampler = await training.save_weights_and_get_sampling_client_async()
        prompts = [[stream.randrange(1, work["vocabulary"]) for _ in range(work["prompt"])] for _ in range(work["rows"])]

        async def sample(row: int, prompt: list[int]):
            params = types.SamplingParams(max_tokens=work["tokens"], seed=row, temperature=1.0, stop=[])
            return await sampler.sample_async(types.ModelInput.from_ints(prompt), 1, params)

        answers = await asyncio.gather(*(sample(row, prompt) for row, prompt in enumerate(prompts)))
        sequences = [answer.sequences[0] for answer in answers]
        batch = [
            datum(prompt + list(found.tokens), len(prompt), list(found.logprobs), 0.0)
            for prompt, found in zip(prompts, sequences)
        ]
        scored = await (await training.forward_async(batch, "cross_entropy")).result_async()
        known = [output["logprobs"].data for output in scored.loss_fn_outputs]
        batch = [
            datum(prompt + list(found.tokens), len(prompt), list(read[len(prompt) - 1 :]), 0.1 if row % 2 else -0.1)
            for row, (prompt, found, read) in enumerate(zip(prompts, sequences, known))
        ]
        # Both are submitted before the first is awaited, as the SDK recommends.
        backward = await training.forward_backward_async(batch, "importance_sampling")
        step = await training.optim_step_async(adam)
        await backward.result_async()
        await step.result_async()

    for _ in sys.stdin:
        start, cpu = time.perf_counter(), time.process_time()
        await play()
        taken = {"seconds": time.perf_counter() - start, "cpu_s": time.process_time() - cpu}
        print(json.dumps(taken), flush=True)


asyncio.run(main())
