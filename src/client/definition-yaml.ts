import { stringify } from 'yaml';
import { definitionContent } from './definition-content.ts';

/** A definition as YAML that can be applied again: what it says, and nothing about its version. */
export const definitionYaml = (definition: Readonly<Record<string, unknown>>): string =>
  stringify(definitionContent(definition), { lineWidth: 0, blockQuote: 'literal' });
