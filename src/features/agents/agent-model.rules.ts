import type { Json } from '../../contract/schema.ts';
import { formatPath, inputSchemaProblems } from '../../engine/tools/index.ts';
import type { ModelCatalogEntry, ModelProviders } from '../../providers/models/model-provider.ts';
import { isOwnedSetting } from '../../providers/models/owned-settings.ts';
import { countLimit, maxListed, nestingFindings, rangeLimit, textLimit } from './agent-limits.rules.ts';
import type { BindingContent, ModelReferenceContent, ResponseFormatContent } from './agents.content.ts';
import { error, type Finding, quoted, warning } from './agents.findings.ts';
import { responseFormatKinds } from './agents.schema.ts';

const longestModelName = 128;
const longestEffort = 32;
const schemaName = /^[A-Za-z0-9_-]{1,64}$/;
const anyWhole = Number.MAX_SAFE_INTEGER;

/** `{provider}.{setting}` taken apart; null when it is neither. Provider names have no dot, settings may. */
export const splitSettingKey = (key: string): { provider: string; setting: string } | null => {
  const dot = key.indexOf('.');
  return dot > 0 && dot < key.length - 1 ? { provider: key.slice(0, dot), setting: key.slice(dot + 1) } : null;
};

/** One vendor keeps the response format one level down, among the sampling settings. */
const holdsOwnedSetting = (setting: string, value: Json): boolean =>
  setting.replaceAll(/[_-]/g, '').toLowerCase() === 'generationconfig' &&
  typeof value === 'object' &&
  value !== null &&
  Object.keys(value).some(isOwnedSetting);

const settingFindings = (binding: string, key: string, value: Json): Finding[] => {
  const path = `${binding}.providerSettings.${key}`.slice(0, 256);
  const refuse = (why: string) => [
    error('invalid-provider-setting', path, `The provider setting ${quoted(key)} ${why}.`),
  ];
  const parts = splitSettingKey(key);
  if (parts === null) return refuse('is not written as {provider}.{setting}');
  if (isOwnedSetting(parts.setting) || holdsOwnedSetting(parts.setting, value))
    return refuse('is decided by the service and cannot be given');
  return nestingFindings(path, value);
};

const catalogEntry = (providers: Pick<ModelProviders, 'get'>, reference: ModelReferenceContent) =>
  providers.get(reference.provider)?.catalog.find((entry) => entry.name === reference.model);

const cannotStructure = (entry: ModelCatalogEntry | undefined, format: ResponseFormatContent | null): boolean =>
  entry?.supportsStructuredOutput === false && format !== null && format.kind !== 'Text';

/** One model of the binding, the main one or a fallback. */
const targetFindings = (
  binding: string,
  path: string,
  reference: ModelReferenceContent,
  format: ResponseFormatContent | null,
  providers: Pick<ModelProviders, 'get'>,
): Finding[] => {
  const findings = [
    ...textLimit(`${path}.provider`, reference.provider, longestModelName),
    ...textLimit(`${path}.model`, reference.model, longestModelName),
  ];
  const provider = providers.get(reference.provider);
  if (provider === undefined) {
    const message = `The model provider ${quoted(reference.provider)} is not registered.`;
    return [...findings, error('provider-not-registered', `${path}.provider`, message)];
  }
  const entry = catalogEntry(providers, reference);
  if (provider.catalog.length > 0 && entry === undefined) {
    const message = `The catalog of ${provider.name} does not list the model ${quoted(reference.model)}.`;
    findings.push(warning('model-not-in-catalog', `${path}.model`, message));
  }
  if (cannotStructure(entry, format)) {
    const message = `The model ${quoted(reference.model)} cannot answer in the format ${format?.kind}.`;
    findings.push(error('structured-output-unsupported', `${binding}.responseFormat`, message));
  }
  return findings;
};

const fallbackFindings = (
  binding: string,
  model: BindingContent,
  providers: Pick<ModelProviders, 'get'>,
): Finding[] => {
  const key = ({ provider, model: name }: ModelReferenceContent) => JSON.stringify([provider, name]);
  const seen = new Set([key(model)]);
  const findings = countLimit(`${binding}.fallbacks`, model.fallbacks.length, maxListed.fallbacks);
  for (const [index, fallback] of model.fallbacks.slice(0, maxListed.fallbacks).entries()) {
    const path = `${binding}.fallbacks[${index}]`;
    if (fallback.model === '') findings.push(error('value-out-of-range', `${path}.model`, `${path}.model is empty.`));
    findings.push(...targetFindings(binding, path, fallback, model.responseFormat, providers));
    if (seen.has(key(fallback))) {
      const message = `The model ${quoted(fallback.model)} of ${quoted(fallback.provider)} is already bound.`;
      findings.push(error('duplicate-entry', path, message));
    }
    seen.add(key(fallback));
  }
  return findings;
};

const hasObjectRoot = (schema: Json): boolean =>
  typeof schema === 'object' && schema !== null && 'type' in schema && schema['type'] === 'object';

/** Nobody reads more; the first ones usually explain the others. */
const maxSchemaFindings = 20;

/**
 * What keeps answers from being checked against the schema, each mistake with its path. Which dialect a schema says
 * that it has is left to the provider: the keywords mean the same here.
 */
const schemaFindings = (path: string, schema: Json): Finding[] =>
  inputSchemaProblems(schema)
    .filter((problem) => problem.path.join() !== '$schema')
    .slice(0, maxSchemaFindings)
    .map((problem) => {
      const at = formatPath([path, ...problem.path]).slice(0, 256);
      return error('invalid-response-format', at, `${at} ${problem.message}.`);
    });

const formatFindings = (binding: string, format: ResponseFormatContent | null): Finding[] => {
  if (format === null) return [];
  const path = `${binding}.responseFormat`;
  const refuse = (member: string, message: string) => error('invalid-response-format', `${path}.${member}`, message);
  if (!responseFormatKinds.includes(format.kind))
    return [refuse('kind', `${quoted(format.kind)} is no response format: ${responseFormatKinds.join(', ')}.`)];
  const findings = textLimit(`${path}.schemaDescription`, format.schemaDescription, 1024);
  if (format.kind !== 'JsonSchema' && format.schema !== null)
    findings.push(refuse('schema', `A schema belongs to the format JsonSchema, not to ${format.kind}.`));
  if (format.kind === 'JsonSchema')
    findings.push(
      ...(hasObjectRoot(format.schema)
        ? schemaFindings(`${path}.schema`, format.schema)
        : [refuse('schema', 'The format JsonSchema needs a JSON schema whose root has the type "object".')]),
    );
  if (format.schemaName !== null && !schemaName.test(format.schemaName))
    findings.push(refuse('schemaName', 'A schema name has 1 to 64 of A-Z a-z 0-9 _ -.'));
  return [...findings, ...nestingFindings(`${path}.schema`, format.schema)];
};

/** A model binding at this path: what it names, how it is set, and whether the catalog agrees. */
export const modelFindings = (
  path: string,
  model: BindingContent,
  providers: Pick<ModelProviders, 'get'>,
): Finding[] => [
  ...targetFindings(path, path, model, model.responseFormat, providers),
  ...rangeLimit(`${path}.temperature`, model.temperature, 0, 2),
  ...rangeLimit(`${path}.topP`, model.topP, 0, 1),
  ...rangeLimit(`${path}.maxOutputTokens`, model.maxOutputTokens, 1, anyWhole),
  ...rangeLimit(`${path}.responseCache.lifetimeMs`, model.responseCache?.lifetimeMs ?? null, 1000, 86_400_000),
  ...textLimit(`${path}.reasoningEffort`, model.reasoningEffort, longestEffort),
  ...Object.entries(model.providerSettings).flatMap(([key, value]) => settingFindings(path, key, value)),
  ...formatFindings(path, model.responseFormat),
  ...fallbackFindings(path, model, providers),
];
