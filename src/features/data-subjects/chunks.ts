// A list in SQL text; SQLite takes some 32 thousand parameters, and smaller texts stay prepared.
const atOnce = 200;

export const chunks = <T>(list: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(list.length / atOnce) }, (_, index) =>
    list.slice(index * atOnce, (index + 1) * atOnce),
  );
