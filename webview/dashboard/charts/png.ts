// The PNG of a chart, rendered by the browser from the SVG.

/** Renders an SVG to a PNG, at `scale` pixels per unit. Rejects if the browser cannot draw the SVG. */
export async function pngOf(
  svg: string,
  { width, height }: { width: number; height: number },
  scale: number,
): Promise<Uint8Array> {
  const picture = new Image();
  const drawn = new Promise((resolve, reject) => {
    picture.onload = resolve;
    picture.onerror = () => reject(new Error('the picture could not be drawn'));
  });
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await drawn;
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [width * scale, height * scale];
  canvas.getContext('2d')!.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise<Blob | null>(resolve => canvas.toBlob(resolve, 'image/png'));
  if (!blob) throw new Error('the picture could not be written');
  return new Uint8Array(await blob.arrayBuffer());
}
