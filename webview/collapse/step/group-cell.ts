// The position of a score in the table of groups.

/** The row of the group, and the index of the score within the group. */
export interface GroupCell {
  readonly row: number;
  readonly member: number;
}
