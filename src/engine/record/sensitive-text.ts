import type { PayloadSettings } from './payload.ts';

/** Content as a span attribute, cut like recorded payloads. Only where `RecordSensitiveData` is on. */
export const sensitiveText = (
  content: unknown,
  { maxPayloadLength }: Pick<PayloadSettings, 'maxPayloadLength'>,
): string => {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return maxPayloadLength === 0 || text.length <= maxPayloadLength
    ? text
    : text.slice(0, maxPayloadLength).toWellFormed();
};
