"""Pictures in transformers: the encoder's features, the first token of a chat, and StarPO iterations, in float32 with SDPA.
The model's own processor reads the pictures. In an iteration, each picture is encoded once and its features are passed to
`generate` and to the training passes (`features` once); `every pass` encodes pictures in each call, as usual. Returned
functions have the attribute `evidence`: results that must equal those of the other side."""
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForImageTextToText, PreTrainedTokenizerFast

from training import policy_loss

EVIDENCE = 4096


def opened(s):
    model = AutoModelForImageTextToText.from_pretrained(s["model_folder"], dtype=torch.float32, attn_implementation="sdpa")
    workload = json.loads((Path(s["folder"]) / "workload.json").read_text())
    return model.eval(), AutoImageProcessor.from_pretrained(s["model_folder"]), workload


def pixels(s, processor, names):
    """The image processor's tensors of pictures; of Idefics3, [pictures, 1, 3, height, width]."""
    images = [Image.open(Path(s["folder"]) / name).convert("RGB") for name in names]
    if s["model"] == "smol":
        return dict(processor([[image] for image in images], return_tensors="pt"))
    return dict(processor(images, return_tensors="pt"))


def thinned(values):
    flat = values.flatten()
    return flat[:: -(-len(flat) // EVIDENCE)].tolist()


def encoding(s, how):
    """Units are pictures."""
    model, processor, workload = opened(s)
    names = workload["pictures"]

    @torch.inference_mode()
    def encode():
        return torch.cat(list(model.get_image_features(**pixels(s, processor, names)).pooler_output))

    def run():
        for _ in range(s["repeats"]):
            encode()
        return s["repeats"] * len(names)

    run.evidence = lambda: [thinned(encode())]
    return run


def chat_inputs(s, model, images, messages):
    """A function from pictures to the model's inputs. For Qwen3-VL, it does what the family's processor does with pictures;
    the processor itself needs options of videos, which the model has not."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(s["model_folder"])
    template = (Path(s["model_folder"]) / "chat_template.jinja").read_text()
    text = lambda: tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False, add_generation_prompt=True)
    if s["model"] == "smol":
        from transformers import Idefics3Processor

        processor = Idefics3Processor(images, tokenizer, image_seq_len=64, chat_template=template)
        return lambda shown: processor(text=[text()], images=[shown], return_tensors="pt", add_special_tokens=False)
    token = tokenizer.convert_ids_to_tokens(model.config.image_token_id)

    def inputs(shown):
        found = images(shown, return_tensors="pt")
        pieces = text().split(token)
        counts = (found["image_grid_thw"].prod(1) // images.merge_size**2).tolist()
        marked = pieces[0] + "".join(token * count + piece for count, piece in zip(counts, pieces[1:]))
        ids = tokenizer(marked, return_tensors="pt", add_special_tokens=False)["input_ids"]
        kinds = (ids == model.config.image_token_id).int()
        return dict(found, input_ids=ids, attention_mask=torch.ones_like(ids), mm_token_type_ids=kinds)

    return inputs


def first_token(s, how):
    """Units are chats."""
    model, images, workload = opened(s)
    inputs_of = chat_inputs(s, model, images, workload["messages"])

    @torch.inference_mode()
    def first():
        shown = [Image.open(Path(s["folder"]) / name).convert("RGB") for name in workload["pictures"]]
        inputs = inputs_of(shown)
        logits = model(**inputs, use_cache=True, logits_to_keep=1).logits[0, -1]
        return inputs["input_ids"][0], logits.log_softmax(-1).max()

    def run():
        for _ in range(s["repeats"]):
            first()
        return s["repeats"]

    def evidence():
        ids, logprob = first()
        return [ids.tolist(), [logprob.item()]]

    run.evidence = evidence
    return run


class Shown:
    """The pictures of an iteration's episodes, as keyword arguments of the model's forward pass."""

    def __init__(self, s, model, processor, workload, once):
        self.model, self.once, self.token = model, once, model.config.image_token_id
        shown = [*workload["prompts"], *(shown for later in workload["observations"] for shown in later)]
        self.pixels = pixels(s, processor, [each["picture"] for each in shown])
        self.counts = [each["ids"].count(self.token) for each in shown]
        if once:
            with torch.no_grad():
                self.encoded = model.get_image_features(**self.pixels)
            self.features = list(self.encoded.pooler_output)
        elif "image_grid_thw" in self.pixels:
            patches = self.pixels["image_grid_thw"].prod(1).tolist()
            self.patches = self.pixels["pixel_values"].split(patches)

    def kwargs(self, ids, pictures):
        """`ids` [rows, length] show `pictures`, which are indices, row by row."""
        grids = self.pixels.get("image_grid_thw")
        known = {}
        if grids is not None:
            known = dict(image_grid_thw=grids[pictures], mm_token_type_ids=(ids == self.token).int())
        if self.once:
            output = type(self.encoded)(pooler_output=[self.features[i] for i in pictures])
            if grids is not None:
                output.deepstack_features = []
            return dict(known, mm_encoder_outputs=dict(image=output))
        if grids is not None:
            return dict(known, pixel_values=torch.cat([self.patches[i] for i in pictures]))
        per_row = [p.view(len(ids), -1, *p.shape[2:]) for p in (self.pixels[key][pictures] for key in self.pixels)]
        return dict(zip(self.pixels, per_row))


def pictured_iteration(s, how):
    """`how`: `features`, once or every pass; `micro`, rows of a training pass. Units are iterations."""
    model, processor, workload = opened(s)
    rows, turns, sampled = s["groups"] * s["group_size"], s["turns"], s["sampled"]
    trained = [p for name, p in model.named_parameters() if "visual" not in name and "vision_model" not in name and "connector" not in name]
    model.requires_grad_(False)
    for parameter in trained:
        parameter.requires_grad_(True)
    optimizer = torch.optim.AdamW(trained, lr=1e-6, weight_decay=0.01, fused=True)
    asked = [
        [workload["prompts"][row // s["group_size"]]["ids"], *(shown["ids"] for shown in workload["observations"][row])]
        for row in range(rows)
    ]
    # Index of the picture of each row and turn in Shown.
    seen = [
        [row // s["group_size"], *(s["groups"] + row * (turns - 1) + turn for turn in range(turns - 1))]
        for row in range(rows)
    ]
    lengths = [len(ids) for ids in asked[0]]
    places, at = [], 0
    for length in lengths:
        at += length
        places += range(at, at + sampled)
        at += sampled
    places = torch.tensor(places)

    def replies(shown):
        """Samples every turn with `generate`, which computes the conversation again in each turn."""
        ids, logprobs = torch.empty(rows, 0, dtype=torch.long), []
        for turn in range(turns):
            ids = torch.cat((ids, torch.tensor([parts[turn] for parts in asked])), 1)
            pictures = [picture for row in seen for picture in row[: turn + 1]]
            with torch.no_grad():
                said = model.generate(
                    input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=sampled, do_sample=True, temperature=1.0,
                    top_k=0, top_p=1.0, pad_token_id=0, eos_token_id=None, return_dict_in_generate=True, output_logits=True,
                    **shown.kwargs(ids, pictures),
                )
            drawn = said.sequences[:, ids.shape[1] :]
            logprobs += [x.log_softmax(-1).gather(1, drawn[:, t : t + 1]) for t, x in enumerate(said.logits)]
            ids = said.sequences
        return ids, torch.cat(logprobs, 1)

    def scored(shown, ids, batch):
        """Log-probs [rows, trained tokens]; logits are computed only where they are needed."""
        pictures = [picture for row in batch for picture in seen[row]]
        hidden = model.model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False, **shown.kwargs(ids, pictures))[0]
        logits = model.lm_head(hidden[:, places - 1])
        return -F.cross_entropy(logits.flatten(0, 1), ids[:, places].flatten(), reduction="none").view(len(ids), -1)

    def update(shown, ids, old, advantages, order):
        optimizer.zero_grad(set_to_none=True)
        for batch in order.split(how["micro"]):
            logp = scored(shown, ids[batch], batch.tolist())
            advantage = advantages[batch, None].expand_as(logp)
            (policy_loss(logp, old[batch], advantage) / (len(order) * len(places))).backward()
        norm = torch.nn.utils.clip_grad_norm_(trained, 1.0, foreach=True)
        optimizer.step()
        return norm

    def run():
        for _ in range(s["repeats"]):
            shown = Shown(s, model, processor, workload, how["features"] == "once")
            ids, old = replies(shown)
            rewards = torch.rand(s["groups"], s["group_size"])
            advantages = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-6)
            for order in torch.randperm(rows).split(s["mini_batch"]):
                update(shown, ids, old, advantages.flatten(), order)
        return s["repeats"]

    def evidence():
        shown = Shown(s, model, processor, workload, how["features"] == "once")
        reply = list(range(1, sampled + 1))
        ids = torch.tensor([sum((part + reply for part in parts), []) for parts in asked])
        with torch.no_grad():
            old = scored(shown, ids, range(rows))
        rate, optimizer.param_groups[0]["lr"] = optimizer.param_groups[0]["lr"], 0.0
        norm = update(shown, ids, old, torch.arange(rows) % 3 - 1.0, torch.arange(rows))
        optimizer.param_groups[0]["lr"] = rate
        return [old.flatten().tolist(), [norm.item()]]

    run.evidence = evidence
    return run
