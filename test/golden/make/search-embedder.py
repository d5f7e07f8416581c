"""A small sentence embedder in the format of ONNX exports of E5 and similar models (tokenizer.json, onnx/model.onnx
with last_hidden_state), and the embeddings of some texts by transformers: the mean over the tokens, scaled to unit
length.
Writes test/golden/search-embedder. Needs torch, transformers, tokenizers, onnx, onnxscript."""
import json
from pathlib import Path

import onnx
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

out = Path(__file__).resolve().parents[1] / "search-embedder"
(out / "onnx").mkdir(parents=True, exist_ok=True)
corpus = [json.loads(line)["content"] for line in open(out.parents[2] / "media/data/search/corpus.jsonl")]

tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
tokenizer.normalizer = normalizers.BertNormalizer()
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
tokenizer.train_from_iterator(corpus, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special))
ids = [(name, tokenizer.token_to_id(name)) for name in ("[SEP]", "[CLS]")]
tokenizer.post_processor = processors.BertProcessing(*ids)
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                               sep_token="[SEP]", mask_token="[MASK]", model_max_length=48,
                               model_input_names=["input_ids", "token_type_ids", "attention_mask"])
fast.save_pretrained(out)
(out / "special_tokens_map.json").unlink(missing_ok=True)

torch.manual_seed(1)
model = BertModel(BertConfig(vocab_size=tokenizer.get_vocab_size(), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                             intermediate_size=64, max_position_embeddings=48, initializer_range=0.4,
                             attn_implementation="eager")).eval()


class Exported(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state


names = ["input_ids", "attention_mask", "token_type_ids"]
example = fast(["one", "two and a half"], padding=True, return_tensors="pt")
torch.onnx.export(Exported(), tuple(example[n] for n in names), str(out / "onnx/model.onnx"), input_names=names,
                  output_names=["last_hidden_state"], dynamo=True, opset_version=18, external_data=False,
                  dynamic_shapes={n: {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence", max=48)} for n in names})

small = onnx.load(out / "onnx/model.onnx")
for item in [*small.graph.node, *small.graph.initializer, *small.graph.value_info, small.graph]:
    del item.metadata_props[:]  # removes source locations in Python
del small.graph.value_info[:]
onnx.save(small, out / "onnx/model.onnx")

texts = [f"query: {q}" for q in ("largest town of the island of Lumuna", "Zürich?", "")] + [f"passage: {p}" for p in corpus[:6]]
cases = []
for text in texts:
    one = fast([text], truncation=True, return_tensors="pt")
    with torch.no_grad():
        mean = model(**one).last_hidden_state[0].mean(0)
    cases.append({"text": text, "tokens": one["input_ids"].shape[1], "embedding": [round(x, 6) for x in (mean / mean.norm()).tolist()]})
json.dump(cases, open(out / "embeddings.json", "w"), indent=0)
