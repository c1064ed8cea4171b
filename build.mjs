/**
 * The only build script. `node build.mjs` makes the single executable dist/acp for this platform;
 * `--target <platform>` (repeatable, or `all`) makes dist/acp-<platform> for another one;
 * `node build.mjs bundle` makes only dist/acp.mjs, which a clone runs.
 * Design: docs/design/executable.md.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { basename, join, relative, sep } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { bundleFile, ensureInstalled, executableFile, nodePackage, pinnedNode, root } from './bin/setup.mjs';

const dist = join(root, 'dist');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Per target: what Node calls the platform, and what sqlite-vec and pkg call it. */
const targets = {
  'linux-x64': { platform: 'linux', arch: 'x64', vector: 'sqlite-vec-linux-x64/vec0.so', pkg: 'linux' },
  'linux-arm64': { platform: 'linux', arch: 'arm64', vector: 'sqlite-vec-linux-arm64/vec0.so', pkg: 'linux' },
  'darwin-x64': { platform: 'darwin', arch: 'x64', vector: 'sqlite-vec-darwin-x64/vec0.dylib', pkg: 'macos' },
  'darwin-arm64': { platform: 'darwin', arch: 'arm64', vector: 'sqlite-vec-darwin-arm64/vec0.dylib', pkg: 'macos' },
  'win-x64': { platform: 'win32', arch: 'x64', vector: 'sqlite-vec-windows-x64/vec0.dll', pkg: 'win' },
};

const filesBelow = (folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .map((path) => join(root, folder, path))
    .filter((path) => statSync(path).isFile())
    .sort();

const hostTarget = () =>
  Object.keys(targets).find(
    (name) => targets[name].platform === process.platform && targets[name].arch === process.arch,
  );

/** Ink asks for React's developer tools only when DEV is set; the bundle goes without that dependency. */
const withoutDevtools = {
  name: 'without-devtools',
  setup(build) {
    build.onResolve({ filter: /^react-devtools-core$/ }, () => ({ path: 'react-devtools-core', namespace: 'stub' }));
    build.onLoad({ filter: /.*/, namespace: 'stub' }, () => ({
      contents:
        'export const initialize = () => undefined; export const connectToDevTools = () => undefined; export default { initialize, connectToDevTools };',
    }));
  },
};

/** Built-in modules that bring OpenSSL, sockets, processes, archives or a REPL with them, which printing help never uses. */
const costly = new Set(
  ['child_process', 'crypto', 'http', 'https', 'net', 'readline', 'readline/promises', 'tls', 'util', 'v8', 'zlib'].map(
    (name) => `node:${name}`,
  ),
);

/** A stand-in that loads the module when one of its members is read; the bundle runs on the Node that builds it. */
const memberwise = (path) => {
  const members = Object.keys(createRequire(import.meta.url)(path));
  const getters = members.map((name) => `get ${name}() { return load().${name}; }`);
  const load = `let loaded; const load = () => (loaded ??= require(${JSON.stringify(path)}));`;
  return `${load} module.exports = { ${getters.join(', ')} };`;
};

/**
 * An ES import of a built-in module would stand at the top of the bundle and run at each start; for `node:http` alone
 * that is 40 ms, because it reads every export and with them Node's whole fetch. A `require` runs where it is reached.
 */
const lazyBuiltins = {
  name: 'lazy-builtins',
  setup(build) {
    build.onResolve({ filter: /^[a-z]/ }, ({ path, kind }) => {
      if (!isBuiltin(path)) return undefined;
      return kind === 'require-call' ? { path, external: true } : { path, namespace: 'builtin' };
    });
    build.onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => ({
      contents: costly.has(path) ? memberwise(path) : `module.exports = require(${JSON.stringify(path)});`,
    }));
  },
};

const bundleOptions = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node26',
  jsx: 'automatic',
  charset: 'ascii',
  legalComments: 'none',
  // Names stay, so that a stack trace from the field can be read; the rest halves what is parsed at each start.
  minifySyntax: true,
  minifyWhitespace: true,
  lineLimit: 200,
  define: { 'process.env.NODE_ENV': '"production"' },
  // CommonJS dependencies ask for built-in modules through `require`, which an ES module does not have.
  banner: {
    js: "import { createRequire as acpCreateRequire } from 'node:module'; const require = acpCreateRequire(import.meta.url);",
  },
  plugins: [withoutDevtools, lazyBuiltins],
  metafile: true,
  logLevel: 'warning',
};

const publish = (text, file, time) => {
  const draft = `${file}.${process.pid}.tmp`;
  writeFileSync(draft, text);
  // Dated to the moment the sources were read: an edit during the build then counts as newer.
  utimesSync(draft, time, time);
  renameSync(draft, file);
};

/** Bundles the program, and each `*.worker.ts` beside it, since a worker thread needs a file of its own. */
const bundle = async () => {
  const { build } = await import('esbuild');
  const started = new Date();
  mkdirSync(dist, { recursive: true });
  const workers = filesBelow('src')
    .filter((source) => source.endsWith('.worker.ts'))
    .map((source) => ({ source, file: join(dist, basename(source).replace(/\.ts$/, '.mjs')) }));
  const inputs = new Set();
  for (const { source, file } of [...workers, { source: join(root, 'src', 'main.ts'), file: bundleFile }]) {
    const result = await build({
      ...bundleOptions,
      absWorkingDir: root,
      entryPoints: [source],
      outfile: file,
      write: false,
    });
    for (const input of Object.keys(result.metafile.inputs)) inputs.add(input);
    publish(result.outputFiles[0].contents, file, started);
  }
  rmSync(join(dist, '.compile-cache'), { recursive: true, force: true });
  return { workers: workers.map(({ file }) => file), inputs: [...inputs], started };
};

/** The notices that the licences of the bundled packages, and of Node itself, ask to be handed on. */
const writeNotices = (inputs) => {
  const folders = inputs.map((input) => input.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//)?.[1]).filter(Boolean);
  const packages = ['better-sqlite3', 'sqlite-vec', 'swagger-ui-dist', nodePackage()].map(
    (name) => `node_modules/${name}`,
  );
  const notices = [...new Set([...folders, ...packages])].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
    const texts = readdirSync(join(root, folder)).filter((file) =>
      /^(licen[sc]e|notice|swagger-ui-bundle\.js\.licen[sc]e)/i.test(file),
    );
    const body = texts.map((file) => readFileSync(join(root, folder, file), 'utf8').trim()).join('\n\n');
    return `${'='.repeat(80)}\n${name} ${version} (${license})\n\n${body || 'Its package carries no licence text.'}\n`;
  });
  writeFileSync(join(dist, 'THIRD-PARTY-LICENSES.txt'), notices.join('\n'));
};

/** A node_modules folder with the locked packages of another platform, kept between builds. */
const packagesFor = (name) => {
  if (name === hostTarget()) return join(root, 'node_modules');
  const { platform, arch } = targets[name];
  const folder = join(root, 'node_modules', '.cache', 'acp-build', name);
  const modules = join(folder, 'node_modules');
  const lock = readFileSync(join(root, 'package-lock.json'));
  const stamp = join(modules, '.acp-lock');
  if (existsSync(stamp) && readFileSync(stamp).equals(lock)) return modules;
  mkdirSync(folder, { recursive: true });
  for (const file of ['package.json', 'package-lock.json', '.npmrc'])
    copyFileSync(join(root, file), join(folder, file));
  const args = [
    'ci',
    '--omit=dev',
    '--include=optional',
    `--os=${platform}`,
    `--cpu=${arch}`,
    '--ignore-scripts',
    '--loglevel=error',
    '--no-bin-links',
  ];
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: 'inherit', shell: process.platform === 'win32' });
  if (status !== 0) throw new Error(`The packages for ${name} could not be installed.`);
  writeFileSync(stamp, lock);
  return modules;
};

/** What the executable carries as files: native parts under stable names, workers, and all of assets/. */
const assetsFor = (name, modules, workers) => {
  const { platform, arch, vector } = targets[name];
  const files = {
    'better_sqlite3.node': join(modules, 'better-sqlite3', 'prebuilds', `${platform}-${arch}.node`),
    [basename(vector)]: join(modules, vector),
    'docs-renderer.js': join(root, 'node_modules', 'swagger-ui-dist', 'swagger-ui-bundle.js'),
    'docs-renderer.css': join(root, 'node_modules', 'swagger-ui-dist', 'swagger-ui.css'),
  };
  for (const worker of workers) files[basename(worker)] = worker;
  for (const file of filesBelow('assets')) files[relative(join(root, 'assets'), file).split(sep).join('/')] = file;
  return files;
};

/** Names the extraction folder: two builds with different files never share one. */
const buildId = (assets) => {
  const hash = createHash('sha256');
  for (const [name, file] of Object.entries(assets).sort())
    hash.update(`${name}\0`).update(readFileSync(file)).update('\0');
  return hash.digest('hex').slice(0, 16);
};

/**
 * A young generation of 8 MiB instead of 32: what a run leaves behind dies young, so a larger one only holds memory.
 * V8 takes its code cache only with the flags that the cache was made with, hence the variable below.
 */
const runtimeFlags = ['--max-semi-space-size=8'];

const executable = async (name, output, { workers, started }) => {
  const require = createRequire(import.meta.url);
  const { default: sea } = require('@yao-pkg/pkg/lib-es5/sea.js');
  const modules = packagesFor(name);
  const { platform, arch, pkg } = targets[name];
  const assets = assetsFor(name, modules, workers);
  const idFile = join(dist, `.build-id-${name}`);
  writeFileSync(idFile, `${manifest.version}-${buildId(assets)}`);
  // The code cache holds what V8 compiled, which only the same platform can take over.
  const useCodeCache = name === hostTarget();
  const nodePath = join(modules, nodePackage(platform, arch), 'bin', platform === 'win32' ? 'node.exe' : 'node');
  const draft = `${output}.${process.pid}.tmp`;
  process.env.NODE_OPTIONS = runtimeFlags.join(' ');
  await sea(bundleFile, {
    nodePath,
    // With a foreign binary pkg would run it to learn its version; both are the pinned one.
    useLocalNode: true,
    signature: platform === 'darwin',
    targets: [{ platform: pkg, arch, nodeRange: `node${process.versions.node.split('.')[0]}`, output: draft }],
    seaConfig: {
      mainFormat: 'module',
      disableExperimentalSEAWarning: true,
      useSnapshot: false,
      useCodeCache,
      execArgv: runtimeFlags,
      assets: { ...assets, 'build-id': idFile },
    },
  });
  rmSync(idFile);
  utimesSync(draft, started, started);
  // A rename, since the file of a running program cannot be written to.
  renameSync(draft, output);
  console.log(`${relative(root, output)}  ${(statSync(output).size / 1e6).toFixed(0)} MB`);
};

const wantedTargets = (names) => {
  const wanted = names.includes('all') ? Object.keys(targets) : names;
  const unknown = wanted.find((name) => !Object.hasOwn(targets, name));
  if (unknown !== undefined)
    throw new Error(`Unknown target "${unknown}"; there are ${Object.keys(targets).join(', ')}.`);
  return wanted.map((name) => [name, join(dist, `acp-${name}${name.startsWith('win') ? '.exe' : ''}`)]);
};

const main = async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { target: { type: 'string', multiple: true, default: [] } },
  });
  const built = await bundle();
  if (positionals[0] === 'bundle') return;
  writeNotices(built.inputs);
  const host = hostTarget();
  const chosen = wantedTargets(values.target);
  if (chosen.length === 0) chosen.push([host, executableFile]);
  for (const [name, output] of chosen) await executable(name, output, built);
};

await ensureInstalled();
if (process.version.split('.')[0] === `v${readFileSync(join(root, '.nvmrc'), 'utf8').split('.')[0]}`) {
  try {
    await main();
  } catch (error) {
    // esbuild has printed its findings by now, with their places in the source.
    console.error(Array.isArray(error.errors) ? 'The bundle could not be built.' : error);
    process.exitCode = 1;
  }
} else {
  const { status } = spawnSync(pinnedNode(), process.argv.slice(1), { stdio: 'inherit' });
  process.exitCode = status ?? 1;
}
