/** A list, newest first, in which one row is chosen, by its id: the choice stays with its row when others come. */
export interface Choice<Row> {
  readonly rows: readonly Row[];
  /** Null: the newest one, whichever it is. */
  readonly selectedId: string | null;
}

/** Where a move by so many rows ends; `Infinity` goes to an end. */
export const movedIndex = (rows: readonly unknown[], index: number, by: number): number =>
  Math.min(Math.max(index + by, 0), rows.length - 1);

export const choiceIndex = ({ rows, selectedId }: Choice<{ readonly id: string }>): number =>
  selectedId === null
    ? 0
    : Math.max(
        0,
        rows.findIndex(({ id }) => id === selectedId),
      );

export const chosenRow = <Row extends { readonly id: string }>(list: Choice<Row>): Row | null =>
  list.rows[choiceIndex(list)] ?? null;

export const moveChoice = <List extends Choice<{ readonly id: string }>>(list: List, by: number): List => ({
  ...list,
  selectedId: list.rows[movedIndex(list.rows, choiceIndex(list), by)]?.id ?? null,
});
