/**
 * A map whose entries come and go all the time. A `Map` makes a new table every so many entries, and V8 links the old one
 * to it: once one of these tables is in the old generation, every later one gets there too, with all the values that
 * it held, until the next full collection (docs/design/memory.md). Here the table holds places only, and the values are in an array.
 */
export class ChurningMap<K, V> {
  readonly #places = new Map<K, number>();
  readonly #values: (V | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#places.size;
  }

  get(key: K): V | undefined {
    const place = this.#places.get(key);
    return place === undefined ? undefined : this.#values[place];
  }

  set(key: K, value: V): void {
    const place = this.#places.get(key) ?? this.#free.pop() ?? this.#values.length;
    this.#places.set(key, place);
    this.#values[place] = value;
  }

  delete(key: K): boolean {
    const place = this.#places.get(key);
    if (place === undefined) return false;
    this.#places.delete(key);
    this.#values[place] = undefined;
    this.#free.push(place);
    return true;
  }

  keys(): MapIterator<K> {
    return this.#places.keys();
  }

  /** In the order in which the keys were set. */
  *values(): IterableIterator<V> {
    for (const place of this.#places.values()) yield this.#values[place] as V;
  }
}
