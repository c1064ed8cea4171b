/** The class of what was thrown. A class name is foreign text too: only what looks like one is passed on. */
export const errorClassOf = (error: unknown): string => {
  if (!(error instanceof Error)) return 'Error';
  const name: unknown = error.name === 'Error' ? error.constructor.name : error.name;
  return typeof name === 'string' && /^[A-Za-z_$][\w$]{0,63}$/.test(name) ? name : 'Error';
};
