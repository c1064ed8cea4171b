/** Value below which the given share of an ascending list lies. */
export const quantile = (ascending: ArrayLike<number>, share: number): number => {
  if (ascending.length === 0) return Number.NaN;
  const index = Math.min(ascending.length - 1, Math.floor(share * ascending.length));
  return ascending[index] ?? Number.NaN;
};

/** Middle value of the finite ones; NaN when there are none. */
export const median = (values: readonly number[]): number => {
  const ascending = values.filter(Number.isFinite).sort((a, b) => a - b);
  const middle = ascending.length >> 1;
  const upper = ascending[middle] ?? Number.NaN;
  return ascending.length % 2 === 1 ? upper : (upper + (ascending[middle - 1] ?? Number.NaN)) / 2;
};
