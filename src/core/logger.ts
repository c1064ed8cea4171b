import { type DestinationStream, pino } from 'pino';
import { createErrorSerializer } from './error-line.ts';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error';

/** Structured log: fields first, then a fixed sentence. Content of messages and credentials never go in. */
export interface Logger {
  debug(fields: Record<string, unknown>, message: string): void;
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

/** A field named like a part of the line would be there twice, and readers keep one of the two. */
const withoutReserved = (fields: Record<string, unknown>): Record<string, unknown> => {
  if (!('message' in fields || 'level' in fields || 'time' in fields)) return fields;
  const { message, level, time, ...others } = fields;
  return {
    ...others,
    ...(message === undefined ? {} : { detail: message }),
    ...(level === undefined ? {} : { fieldLevel: level }),
    ...(time === undefined ? {} : { fieldTime: time }),
  };
};

/** One JSON object per line with `time`, `level` and `message`; foreign errors go in as `error`. */
export const createLogger = (level: LogLevel, destination?: DestinationStream): Logger => {
  const serialize = createErrorSerializer();
  return pino(
    {
      level,
      base: null,
      messageKey: 'message',
      errorKey: 'error',
      serializers: { error: serialize, err: serialize },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }), log: withoutReserved },
    },
    destination ?? pino.destination({ dest: 1, sync: true }),
  );
};

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
