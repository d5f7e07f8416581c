// Names a score in the table of groups.

/** A score by the row of its group and its place in it. */
export interface GroupCell {
  readonly row: number;
  readonly member: number;
}
