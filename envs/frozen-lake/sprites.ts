// A frozen lake as Gymnasium's `rgb_array` draws it, and so VAGEN: cells of 64 pixels, smaller if the lake has more than
// 8 × 8 tiles. Gymnasium has two sets of images, which it lays out differently. Those of version 1.4 are part of this
// product. Those of versions 0.29 to 1.3 (an elf) are other authors' and are read from a folder that the user names.
// test/golden/envs/sprites.json holds pictures by Gymnasium's own code.
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DrawnPictures } from '../api/drawn-pictures';
import { Drawing } from '../api/drawing';
import { roundHalfToEven } from '../api/python-round';
import { readSprite, scaled, type Sprite } from '../api/sprite';
import { goal, hole, type Lake } from './lake';

/** Side of a tile of Gymnasium's images, and maximum side of a picture. */
const nativePixels = 64;
const mostPixels = 512;
const edge = [180, 200, 230] as const;

/** The elf's images by its last action: left, down, right, up. */
const elves = ['elf_left', 'elf_down', 'elf_right', 'elf_up'];
const elfFiles = ['ice', 'hole', 'cracked_hole', 'goal', 'stool', ...elves];
const cracks = ['tile_ice_crack_a', 'tile_ice_crack_b'];
/** Sizes of the images that are placed on a tile of 64 pixels. */
const overlays = { agent: [40, 36], goal_flag: [24, 32], letter_s: [12, 20], letter_g: [12, 20] } as const;
const newFiles = ['tile_ice', 'tile_hole', ...cracks, ...Object.keys(overlays)];

const drawn = new DrawnPictures();

/** Side of the picture of a lake of `size` × `size` tiles. */
export const spriteLakeSide = (size: number): number => Math.min(nativePixels * size, mostPixels);

/** The images of a picture by their files' names, from the folder of version 1.4 or the folder that the user names. */
function imagesOf(folder: string | null): Record<string, Sprite> {
  const from = folder === null ? fileURLToPath(new URL('../frozen-lake/sprites', import.meta.url)) : resolve(folder);
  const remedy =
    folder === null
      ? 'install the extension again'
      : 'set env_config.sprites_folder to the folder gymnasium/envs/toy_text/img of Gymnasium 0.29 to 1.3, or to null for the images of version 1.4';
  const files = folder === null ? newFiles : elfFiles;
  return Object.fromEntries(files.map(name => [name, readSprite(join(from, `${name}.png`), remedy)]));
}

/** @throws MissingDependency if an image of the folder cannot be read */
export const checkSprites = (folder: string | null): void => void imagesOf(folder);

/**
 * Returns the picture of a lake as PNG.
 * @param cell the player's cell
 * @param move the last action, 0 left, 1 down, 2 right, 3 up; undefined before the first
 * @param folder folder of the images of Gymnasium 0.29 to 1.3; null for those of version 1.4
 */
export function spriteLake(lake: Lake, cell: number, move: number | undefined, folder: string | null): Uint8Array {
  const draw = folder === null ? drawNew : drawElf;
  const facing = folder === null || lake.tiles[cell] === hole ? '' : (move ?? 1); // what the picture shows of it
  return drawn.get(`${lake.tiles.join('')} ${lake.start} ${cell} ${facing} ${folder}`, () => {
    const side = spriteLakeSide(lake.size);
    const drawing = new Drawing(side, side, [0, 0, 0]);
    draw(new Tiles(drawing, Math.floor(side / lake.size), lake.size, imagesOf(folder)), lake, cell, move ?? 1);
    return drawing.png();
  });
}

function drawElf(tiles: Tiles, lake: Lake, cell: number, move: number): void {
  lake.tiles.forEach((tile, at) => {
    tiles.fill(at, 'ice');
    if (tile === hole) tiles.fill(at, 'hole');
    else if (tile === goal) tiles.fill(at, 'goal');
    else if (at === lake.start) tiles.fill(at, 'stool');
    tiles.outline(at);
  });
  tiles.fill(cell, lake.tiles[cell] === hole ? 'cracked_hole' : elves[move]);
}

function drawNew(tiles: Tiles, lake: Lake, cell: number): void {
  lake.tiles.forEach((tile, at) => {
    tiles.fill(at, tile === hole ? 'tile_hole' : 'tile_ice');
    if (tile === goal) {
      tiles.place(at, 'goal_flag', 'foot');
      tiles.place(at, 'letter_g', 'corner');
    } else if (at === lake.start) tiles.place(at, 'letter_s', 'corner');
    else if (tile !== hole) {
      const crack = ((at % lake.size) * 3 + Math.floor(at / lake.size) * 5) % 7;
      if (crack < cracks.length) tiles.fill(at, cracks[crack]);
    }
    tiles.outline(at);
  });
  if (lake.tiles[cell] !== hole) tiles.place(cell, 'agent', 'centre');
}

/** Draws images on the square tiles of a drawing; tiles are counted row by row. */
class Tiles {
  private readonly sized = new Map<string, Sprite>();

  constructor(
    private readonly drawing: Drawing,
    private readonly pixels: number,
    private readonly columns: number,
    private readonly images: Record<string, Sprite>,
  ) {}

  /** Draws an image that fills the tile. */
  fill(at: number, name: string): void {
    const [x, y] = this.corner(at);
    this.drawing.image(this.image(name, this.pixels, this.pixels), x, y);
  }

  /** Draws an image on a part of the tile. */
  place(at: number, name: keyof typeof overlays, where: 'centre' | 'corner' | 'foot'): void {
    const { pixels } = this;
    const [width, height] = overlays[name].map(side => Math.max(1, roundHalfToEven((side * pixels) / nativePixels)));
    const margin = roundHalfToEven(pixels * 0.06);
    const left = where === 'corner' ? margin : Math.floor((pixels - width) / 2);
    const foot = pixels - height - roundHalfToEven(pixels * 0.12);
    const top = { corner: margin, foot, centre: Math.floor((pixels - height) / 2) }[where];
    const [x, y] = this.corner(at);
    this.drawing.image(this.image(name, width, height), x + left, y + top);
  }

  /** Draws a line of one pixel along the inner edges of the tile. */
  outline(at: number): void {
    const { drawing, pixels } = this;
    const [x, y] = this.corner(at);
    drawing.rectangle(x, y, pixels, 1, edge);
    drawing.rectangle(x, y + pixels - 1, pixels, 1, edge);
    drawing.rectangle(x, y, 1, pixels, edge);
    drawing.rectangle(x + pixels - 1, y, 1, pixels, edge);
  }

  private corner(at: number): [x: number, y: number] {
    return [(at % this.columns) * this.pixels, Math.floor(at / this.columns) * this.pixels];
  }

  private image(name: string, width: number, height: number): Sprite {
    const known = this.sized.get(name) ?? scaled(this.images[name], width, height);
    this.sized.set(name, known);
    return known;
  }
}
