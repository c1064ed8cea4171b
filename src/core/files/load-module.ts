import { createRequire, registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { AcpError } from '../../contract/errors.ts';

/** What a host module gets from `import … from 'acp'`, wherever the module lies on disk. */
export type HostLibrary = Readonly<Record<string, unknown>>;

const libraryUrl = 'acp:library';
const loaderUrl = 'acp:loader';
const libraryKey = Symbol.for('acp.host-library');

type ImportModule = (url: string) => Promise<Record<string, unknown>>;

const librarySource = (library: HostLibrary): string =>
  [
    `const library = globalThis[Symbol.for(${JSON.stringify(libraryKey.description)})];`,
    ...Object.keys(library).map((name) => `export const ${name} = library.${name};`),
  ].join('\n');

let importModule: ImportModule | undefined;

/**
 * The single executable's own `import()` knows only built-in modules. A module that the default loader has loaded
 * does not have that limit, so one is made up whose only content is an `import()`.
 */
const installLoader = (library: HostLibrary): ImportModule => {
  Object.defineProperty(globalThis, libraryKey, { value: library, configurable: true });
  const sources: Readonly<Record<string, string>> = {
    [libraryUrl]: librarySource(library),
    [loaderUrl]: 'export const importModule = (url) => import(url);',
  };
  registerHooks({
    resolve: (specifier, context, next) => {
      const url = specifier === 'acp' ? libraryUrl : specifier;
      return Object.hasOwn(sources, url) ? { url, format: 'module', shortCircuit: true } : next(specifier, context);
    },
    load: (url, context, next) => {
      const source = sources[url];
      return source === undefined ? next(url, context) : { source, format: 'module', shortCircuit: true };
    },
  });
  return createRequire(import.meta.url)(loaderUrl).importModule as ImportModule;
};

const identity = <T>(definition: T): T => definition;

/**
 * Loads a host module: `.mjs`, `.cjs`, `.js`, or `.mts` and `.ts` with erasable types. It may import `acp`, its own
 * files and the packages that are installed beside it. The first call decides what `acp` exports.
 * Throws `validation-failed` with the path when the module cannot be found, read or run.
 */
export const loadModule = async (
  path: string,
  library: HostLibrary = { defineModule: identity },
): Promise<Record<string, unknown>> => {
  importModule ??= installLoader(library);
  try {
    return await importModule(pathToFileURL(resolve(path)).href);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new AcpError('validation-failed', `The module ${path} could not be loaded: ${reason}`, { cause });
  }
};
