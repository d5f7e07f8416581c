"""Golden values of image processors, made with transformers' default (torchvision) processors and Pillow.

Run: python test/golden/make/vision_images.py  (needs torch, torchvision, transformers, pillow)
Writes test/golden/vision/pictures/ and test/golden/vision/processors.json: for each processor and picture, the
grid, the number of image tokens or the prompt of the tiles, and the SHA-256 of the float32 pixel values.
"""
import hashlib
import json
import pathlib
import numpy as np
from PIL import Image, ImageOps
from transformers import Idefics3ImageProcessor, Idefics3Processor, Qwen2VLImageProcessor, SmolVLMImageProcessor

here = pathlib.Path(__file__).resolve().parents[1] / "vision"
(here / "pictures").mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(7)


def waves(width, height, channels, noise=0):
    y, x = np.mgrid[0:height, 0:width]
    planes = [127.5 + 127.5 * np.sin(x * (0.09 + 0.05 * c) + c) * np.cos(y * (0.13 - 0.03 * c)) for c in range(channels)]
    pixels = np.stack(planes, -1) + rng.normal(0, noise, (height, width, channels))
    return np.clip(pixels, 0, 255).astype(np.uint8)


def board(width, height, cell):
    colours = rng.integers(0, 256, (height // cell + 1, width // cell + 1, 3), dtype=np.uint8)
    return np.kron(colours, np.ones((cell, cell, 1), dtype=np.uint8))[:height, :width]


pictures = {
    "board": Image.fromarray(board(192, 192, 32)),
    "wide-board": Image.fromarray(board(701, 97, 31)),
    "large-board": Image.fromarray(board(1400, 900, 53)),
    "odd": Image.fromarray(waves(61, 37, 3, 20)),
    "prime": Image.fromarray(waves(127, 211, 3)),
    "rgba": Image.fromarray(waves(45, 58, 4, 10), "RGBA"),
    "grey": Image.fromarray(waves(70, 33, 1)[..., 0], "L"),
    "grey-alpha": Image.fromarray(waves(29, 31, 2), "LA"),
    "one-bit": Image.fromarray(waves(50, 40, 1)[..., 0], "L").convert("1"),
    "palette": Image.fromarray(board(64, 48, 16)).quantize(16),
    "narrow": Image.fromarray(waves(1, 10_000, 3)),
    "strip": Image.fromarray(waves(600, 3, 3)),
    "tiny": Image.fromarray(waves(3, 2, 3)),
    "pixel": Image.fromarray(waves(1, 1, 3)),
}
turned = Image.Exif()
turned[0x0112] = 6  # the camera was turned by a quarter
jpegs = {
    "jpeg": (waves(133, 97, 3, 15), dict(quality=80)),
    "progressive": (waves(61, 85, 3, 10), dict(quality=75, progressive=True, subsampling=1)),
    "grey-jpeg": (waves(40, 30, 1)[..., 0], {}),
    "turned": (waves(64, 33, 3), dict(exif=turned)),
    "tiny-jpeg": (waves(3, 5, 3), dict(quality=90)),
}
for name, (pixels, options) in jpegs.items():
    Image.fromarray(pixels).save(here / "pictures" / f"{name}.jpg", optimize=True, **options)
Image.fromarray(waves(9, 9, 3)).convert("CMYK").save(here / "pictures" / "cmyk.jpg", optimize=True)
for name, picture in pictures.items():
    extra = {"transparency": 3} if name == "palette" else {}
    picture.save(here / "pictures" / f"{name}.png", optimize=True, **extra)

half = dict(image_mean=[0.5, 0.5, 0.5], image_std=[0.5, 0.5, 0.5])
processors = {
    "qwen2_5_vl": (Qwen2VLImageProcessor, dict(min_pixels=3136, max_pixels=200_704, patch_size=14)),
    "qwen3_vl": (Qwen2VLImageProcessor, dict(size={"shortest_edge": 4096, "longest_edge": 65_536}, patch_size=16, **half)),
    "small-patches": (Qwen2VLImageProcessor, dict(min_pixels=64, max_pixels=2304, patch_size=4, merge_size=3,
                                                  temporal_patch_size=1, resample=2)),
    "idefics3": (Idefics3ImageProcessor, dict(size={"longest_edge": 448}, max_image_size={"longest_edge": 112})),
    "smolvlm": (SmolVLMImageProcessor, dict(size={"longest_edge": 512}, max_image_size={"longest_edge": 512})),
    "unsplit": (SmolVLMImageProcessor, dict(size={"longest_edge": 300}, max_image_size={"longest_edge": 64},
                                            do_image_splitting=False, resample=3)),
}


class Words:
    """Attributes of Idefics3Processor that its prompt needs."""
    fake_image_token, image_token, global_image_tag, image_seq_len = "<fake_token_around_image>", "<image>", "<global-img>", 2


cases, stored = [], {}
for processor_name, (cls, options) in processors.items():
    processor = cls(**options)
    stored[processor_name] = json.loads(processor.to_json_string())
    for name in [*(f"{name}.png" for name in pictures), *(f"{name}.jpg" for name in jpegs)]:
        case = dict(processor=processor_name, picture=name)
        picture = ImageOps.exif_transpose(Image.open(here / "pictures" / name))  # as transformers' load_image does
        tiles = processor_name in ("idefics3", "smolvlm", "unsplit")
        try:
            out = processor(images=[picture], return_tensors="pt", **(dict(return_row_col_info=True) if tiles else {}))
        except ValueError as error:
            cases.append(dict(**case, refused=str(error)))
            continue
        values = out["pixel_values"]
        if tiles:
            rows, columns = out["rows"][0][0], out["cols"][0][0]
            case |= dict(rows=rows, columns=columns, count=values.shape[1],
                         prompt=Idefics3Processor.replace_image_token(Words, out, 0))
        else:
            t, rows, columns = out["image_grid_thw"][0].tolist()
            case |= dict(rows=rows, columns=columns, tokens=t * rows * columns // processor.merge_size**2)
        data = values.contiguous().numpy().astype("<f4").tobytes()
        cases.append(dict(**case, length=values.numel(), sha256=hashlib.sha256(data).hexdigest()))
(here / "processors.json").write_text(json.dumps(dict(processors=stored, cases=cases), indent=1) + "\n")
print(len(cases), "cases")
