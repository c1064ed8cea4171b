import { AcpError } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';

export type PolicyDocumentKind = 'guard' | 'rule' | 'quota' | 'price';

/** The member of that name in any case, as configuration files have it. */
const member = (value: unknown, name: string): unknown =>
  isRecord(value) ? Object.entries(value).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1] : undefined;

/** A section of a whole configuration file, or the document itself when it is none. */
const section = (document: unknown, path: readonly string[]): unknown => {
  if (member(document, 'Service') === undefined) return document;
  const value = path.reduce(member, document);
  if (value !== undefined) return value;
  throw new AcpError('validation-failed', `The configuration has no section ${path.join(':')}.`);
};

const renamed = (value: unknown, names: readonly string[]): unknown =>
  isRecord(value)
    ? Object.fromEntries(
        Object.entries(value).map(([key, entry]) => [
          names.find((name) => name.toLowerCase() === key.toLowerCase()) ?? key,
          entry,
        ]),
      )
    : value;

const everyPii = ['Email', 'PhoneNumber', 'CreditCard', 'Iban', 'IpAddress'];

/** Configuration also takes `All` and words with commas between them. */
const piiList = (value: unknown): unknown => {
  if (typeof value !== 'string') return value;
  if (value.trim().toLowerCase() === 'all') return everyPii;
  return value.split(',').map((word) => word.trim());
};

const guardDocument = (document: unknown): unknown => {
  const guard = renamed(section(document, ['Service', 'ContentGuard', 'Pattern']), [
    'DeniedTerms',
    'MaskedPii',
    'MaskReplacement',
  ]);
  return isRecord(guard) && guard['MaskedPii'] !== undefined
    ? { ...guard, MaskedPii: piiList(guard['MaskedPii']) }
    : guard;
};

const otherPricing = new Set(['currency', 'voice', 'images']);

const priceDocument = (document: unknown): unknown => {
  const pricing = section(document, ['Service', 'Pricing']);
  if (!isRecord(pricing)) return pricing;
  return Object.fromEntries(
    Object.entries(pricing).flatMap(([provider, models]) => {
      if (otherPricing.has(provider.toLowerCase())) return [];
      if (!isRecord(models)) return [[provider, models]];
      const entries = Object.entries(models);
      return [
        [
          provider,
          Object.fromEntries(
            entries.map(([model, price]) => [model, renamed(price, ['Input', 'Output', 'CachedInput'])]),
          ),
        ],
      ];
    }),
  );
};

const ruleDocument = (document: unknown): unknown => {
  if (Array.isArray(document)) return { rules: document };
  return isRecord(document) && document['toolName'] !== undefined ? { rules: [document] } : document;
};

/** A document of a file as the service takes it: sections of a configuration, single rules and quotas are brought in form. */
export const policyDocument = (kind: PolicyDocumentKind, document: unknown): unknown => {
  if (kind === 'guard') return guardDocument(document);
  if (kind === 'price') return priceDocument(document);
  if (kind === 'rule') return ruleDocument(document);
  return isRecord(document) ? [document] : document;
};
