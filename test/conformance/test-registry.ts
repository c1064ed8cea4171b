/**
 * Stands in for `node:test` where tests are listed and not run: every call that would register a test leaves its name,
 * as it is made, loops and templates included. Skipped ones prove nothing and leave none.
 */
interface Options {
  readonly skip?: unknown;
  readonly todo?: unknown;
}

type Body = (...args: never[]) => unknown;

const found: string[] = [];
/** Names of the suites around what is being registered. */
let around: readonly string[] = [];

export const registeredTests = (): readonly string[] => found;

const read = (given: readonly unknown[]) => ({
  name: given.find((value): value is string => typeof value === 'string') ?? '',
  options: given.find((value): value is Options => typeof value === 'object' && value !== null) ?? {},
  body: given.find((value): value is Body => typeof value === 'function'),
});

const isOff = ({ skip, todo }: Options): boolean =>
  [skip, todo].some((value) => value !== undefined && value !== null && value !== false);

const registerTest = (...given: readonly unknown[]): void => {
  const { name, options, body } = read(given);
  if (body !== undefined && !isOff(options)) found.push([...around, name].join(' '));
};

const registerSuite = (...given: readonly unknown[]): void => {
  const { name, options, body } = read(given);
  if (body === undefined || isOff(options)) return;
  const outer = around;
  around = [...outer, name];
  try {
    body();
  } finally {
    around = outer;
  }
};

const nothing = (): void => undefined;

export const test = Object.assign(registerTest, { skip: nothing, todo: nothing, only: registerTest });
export const describe = Object.assign(registerSuite, { skip: nothing, todo: nothing, only: registerSuite });
export const before = nothing;
export const after = nothing;
export const beforeEach = nothing;
export const afterEach = nothing;
