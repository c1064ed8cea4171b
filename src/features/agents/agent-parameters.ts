import { AcpError, type FieldError } from '../../contract/errors.ts';
import type { AgentContent } from './agents.content.ts';

type Parameter = AgentContent['parameters'][number];

const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

export const fitsKind = (kind: Parameter['kind'], value: string): boolean => {
  if (kind === 'Number') return jsonNumber.test(value);
  if (kind === 'Boolean') return value === 'true' || value === 'false';
  return true;
};

const expected = { Text: 'text', Number: 'a number in JSON syntax', Boolean: 'true or false' } as const;

const valueError = (parameter: Parameter, value: string, maxBytes: number): string | null => {
  if (Buffer.byteLength(value) > maxBytes) return `is longer than ${maxBytes} bytes`;
  return fitsKind(parameter.kind, value) ? null : `must be ${expected[parameter.kind]}`;
};

type Values = Readonly<Record<string, string>>;

/**
 * Values of a run's parameters: those of the request, else defaults, else the empty string. The function throws
 * `parameter-invalid` with an entry for each undeclared, missing, unfit or too long (`maxBytes`) parameter.
 */
export const parameterResolver = (
  parameters: readonly Parameter[],
  maxBytes: number,
): ((sent: Values | null) => Values) => {
  const declared = new Set(parameters.map((parameter) => parameter.name));
  return (sent) => {
    const errors: FieldError[] = Object.keys(sent ?? {})
      .filter((name) => !declared.has(name))
      .map((name) => ({ path: `parameters.${name}`, message: 'is not a parameter of this agent' }));
    const values = parameters.map((parameter): [string, string] => {
      const { name } = parameter;
      const value = sent !== null && Object.hasOwn(sent, name) ? sent[name] : undefined;
      const message = value === undefined ? null : valueError(parameter, value, maxBytes);
      if (message !== null) errors.push({ path: `parameters.${name}`, message });
      if (value === undefined && parameter.required && parameter.defaultValue === null)
        errors.push({ path: `parameters.${name}`, message: 'is required' });
      return [name, value ?? parameter.defaultValue ?? ''];
    });
    const first = errors[0];
    if (first !== undefined)
      throw new AcpError('parameter-invalid', `${first.path} ${first.message}.`, { details: { errors } });
    return Object.fromEntries(values);
  };
};
