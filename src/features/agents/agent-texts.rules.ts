import { type InstructionTexts, instructionTexts, isCultureTag, placeholdersOf } from './agent-instructions.ts';
import { byteLimit, countLimit, maxInstructionBytes, maxListed, textLimit } from './agent-limits.rules.ts';
import { fitsKind } from './agent-parameters.ts';
import type { AgentContent } from './agents.content.ts';
import { error, type Finding, quoted, warning } from './agents.findings.ts';
import { parameterKinds } from './agents.schema.ts';

const parameterName = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

const cultureFindings = ({ instructionsByCulture }: AgentContent): Finding[] => {
  const cultures = Object.entries(instructionsByCulture ?? {});
  const findings = countLimit('instructionsByCulture', cultures.length, maxListed.cultures);
  const seen = new Set<string>();
  for (const [culture, text] of cultures.slice(0, maxListed.cultures)) {
    const path = `instructionsByCulture.${culture}`.slice(0, 256);
    if (!isCultureTag(culture))
      findings.push(error('invalid-culture', path, `${quoted(culture)} is no BCP 47 language tag.`));
    // Tags are compared without case, so that two spellings of one tag would hide each other.
    if (seen.has(culture.toLowerCase()))
      findings.push(error('duplicate-entry', path, `The culture ${quoted(culture)} is listed twice.`));
    seen.add(culture.toLowerCase());
    findings.push(...byteLimit(path, text, maxInstructionBytes));
  }
  return findings;
};

const parameterFindings = ({ parameters }: AgentContent): Finding[] => {
  const seen = new Set<string>();
  return parameters.slice(0, maxListed.parameters).flatMap((parameter, index) => {
    const path = `parameters[${index}]`;
    const findings = textLimit(`${path}.description`, parameter.description, 512);
    const refuse = (member: string, message: string) =>
      findings.push(error('invalid-parameter', `${path}.${member}`, message));
    if (!parameterName.test(parameter.name))
      refuse('name', `${quoted(parameter.name)} is no parameter name: 1 to 64 letters, digits and _, no digit first.`);
    if (seen.has(parameter.name)) refuse('name', `The parameter ${quoted(parameter.name)} is declared twice.`);
    seen.add(parameter.name);
    if (!parameterKinds.includes(parameter.kind))
      refuse('kind', `${quoted(parameter.kind)} is no kind of parameter: ${parameterKinds.join(', ')}.`);
    else if (parameter.defaultValue !== null && !fitsKind(parameter.kind, parameter.defaultValue))
      refuse('defaultValue', `The default of ${quoted(parameter.name)} is not of the kind ${parameter.kind}.`);
    return findings;
  });
};

const placeholderFindings = (content: AgentContent, shared: InstructionTexts | null): Finding[] => {
  const declared = new Set(content.parameters.map((parameter) => parameter.name));
  const used = new Set<string>();
  const findings: Finding[] = [];
  const read = (path: string, text: string, whose: string): void => {
    for (const name of placeholdersOf(text)) {
      used.add(name);
      if (declared.has(name)) continue;
      const message = `${whose} use {{${name}}}, which is not among the parameters.`;
      findings.push(error('undeclared-placeholder', path, message));
    }
  };
  for (const { path, text } of instructionTexts(content)) read(path.slice(0, 256), text, 'The instructions');
  if (content.harness !== null)
    read('harness.harnessInstructions', content.harness.harnessInstructions ?? '', 'The harness instructions');
  for (const { text } of shared === null ? [] : instructionTexts(shared))
    read('sharedInstructionsName', text, `The shared instructions of ${quoted(content.sharedInstructionsName ?? '')}`);
  for (const [index, { name }] of content.parameters.slice(0, maxListed.parameters).entries())
    if (!used.has(name))
      findings.push(warning('unused-parameter', `parameters[${index}]`, `No text uses the parameter ${quoted(name)}.`));
  return findings;
};

/** Instructions, cultures, parameters and the placeholders that tie them; shared texts use this agent's parameters. */
export const textFindings = (content: AgentContent, shared: InstructionTexts | null): Finding[] => [
  ...cultureFindings(content),
  ...parameterFindings(content),
  ...placeholderFindings(content, shared),
];
