// Pictures of states that were drawn before. The members of a prompt group begin with the same state and often meet again, so
// an environment need not draw and compress the same picture for each of them.

/** Maximum number of kept pictures; the one that was not used for longest is dropped. */
const mostKept = 512;

export class DrawnPictures {
  private readonly kept = new Map<string, Uint8Array>();

  /**
   * Returns the picture of a state; draws it if it is not kept.
   * @param state names everything on which the picture depends
   */
  get(state: string, draw: () => Uint8Array): Uint8Array {
    const picture = this.kept.get(state) ?? draw();
    this.kept.delete(state);
    this.kept.set(state, picture);
    if (this.kept.size > mostKept) this.kept.delete(this.kept.keys().next().value!);
    return picture.slice(); // the caller may change its bytes
  }
}
