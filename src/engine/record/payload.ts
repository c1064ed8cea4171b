import type { Json } from '../../contract/schema.ts';
import { cutText } from '../tools/index.ts';

export interface PayloadSettings {
  readonly recordToolPayloads: boolean;
  /** Characters; 0: no limit. */
  readonly maxPayloadLength: number;
}

export interface RecordedPayload {
  /** Text for records; null when payloads are not recorded. */
  readonly text: string | null;
  readonly truncated: boolean;
}

/** Payload text as it may be stored and streamed. The model always gets the whole. */
export const recordedPayload = (text: string, settings: PayloadSettings): RecordedPayload => {
  if (!settings.recordToolPayloads) return { text: null, truncated: false };
  const limit = settings.maxPayloadLength;
  if (limit === 0 || text.length <= limit) return { text, truncated: false };
  return { text: cutText(text, limit), truncated: true };
};

/** The same for an event: JSON stays JSON while it is whole, and is text once it was cut. */
export const eventPayload = (payload: RecordedPayload): Json => {
  if (payload.text === null || payload.truncated) return payload.text;
  try {
    return JSON.parse(payload.text) as Json;
  } catch {
    // Arguments that a model wrote wrongly are shown as it wrote them.
    return payload.text;
  }
};

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
