import { Document, visit } from 'yaml';
import { definitionContent } from '../../client/definition-content.ts';
import { steersTerminal, yamlForTerminal } from '../../text/terminal-guard.ts';

/**
 * A value as YAML, the same to readers of YAML 1.1, where `yes` is a truth value and `12:30` a number. `forTerminal`: with
 * escapes for what would steer a terminal.
 */
export const yamlText = (value: unknown, forTerminal: boolean): string => {
  const document = new Document(value, { aliasDuplicateObjects: false, compat: 'yaml-1.1' });
  if (forTerminal)
    visit(document, {
      Scalar: (_key, scalar) => {
        // Only these quotes know escapes.
        if (typeof scalar.value === 'string' && steersTerminal(scalar.value)) scalar.type = 'QUOTE_DOUBLE';
      },
    });
  const yaml = document.toString({ lineWidth: 0, blockQuote: 'literal' });
  return forTerminal ? yamlForTerminal(yaml) : yaml;
};

/** A definition as YAML that can be applied again: what it says, and nothing about its version. */
export const definitionYaml = (definition: Readonly<Record<string, unknown>>, forTerminal: boolean): string =>
  yamlText(definitionContent(definition), forTerminal);
