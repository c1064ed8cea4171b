import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';
import { A2AError } from './a2a-errors.ts';

type Members = Readonly<Record<string, Json>>;

const membersOf = (value: unknown): Members | null =>
  isRecord(value) && !Array.isArray(value) ? (value as Members) : null;

/** Mark of data that are no object, which version 0.3 has no form for. */
const wrappedData = 'data_part_compat';

const without = (members: Members, ...names: string[]): Record<string, Json> =>
  Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)));

const filePart = (file: Members | null): Record<string, Json> => {
  if (file === null) throw new A2AError('InvalidParams', 'A file part must have a file.');
  const { bytes, uri, mimeType, name } = file;
  return {
    ...(bytes === undefined ? {} : { raw: bytes }),
    ...(uri === undefined ? {} : { url: uri }),
    ...(typeof mimeType === 'string' ? { mediaType: mimeType } : {}),
    ...(typeof name === 'string' ? { filename: name } : {}),
  };
};

const dataPart = (data: Json | undefined, metadata: Members | null): Record<string, Json> => {
  const isWrapped = metadata?.[wrappedData] === true;
  const value = isWrapped ? membersOf(data)?.['value'] : data;
  return { data: value ?? null };
};

const part = (value: Json): Json => {
  const members = membersOf(value);
  if (members === null) return value;
  const metadata = membersOf(members['metadata']);
  const rest = metadata === null ? {} : { metadata };
  if (members['kind'] === 'text')
    return { ...(members['text'] === undefined ? {} : { text: members['text'] }), ...rest };
  if (members['kind'] === 'file') return { ...filePart(membersOf(members['file'])), ...rest };
  if (members['kind'] === 'data') return { ...dataPart(members['data'], metadata), ...rest };
  throw new A2AError('InvalidParams', 'The kind of a part must be text, file or data.');
};

const roles: Readonly<Record<string, string>> = { user: 'ROLE_USER', agent: 'ROLE_AGENT' };

const message = (members: Members): Json => {
  const { role, parts } = members;
  return {
    ...without(members, 'kind'),
    ...(typeof role === 'string' ? { role: roles[role] ?? role } : {}),
    ...(Array.isArray(parts) ? { parts: parts.map(part) } : {}),
  };
};

const configuration = (members: Members): Json => {
  const { blocking, pushNotificationConfig } = members;
  return {
    ...without(members, 'blocking', 'pushNotificationConfig'),
    ...(typeof blocking === 'boolean' ? { returnImmediately: !blocking } : {}),
    ...(pushNotificationConfig === undefined ? {} : { taskPushNotificationConfig: pushNotificationConfig }),
  };
};

/** Parameters of a message in the form of version 1.0, which checks them. */
export const fromLegacySend = (params: Members): Members => {
  const said = membersOf(params['message']);
  const configured = membersOf(params['configuration']);
  return {
    ...params,
    ...(said === null ? {} : { message: message(said) }),
    ...(configured === null ? {} : { configuration: configuration(configured) }),
  };
};
