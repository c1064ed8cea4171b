/** Every type that is recognized by the bytes of a file, with the extension of a file that came without a name. */
export const fileExtensions: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'application/pdf': 'pdf',
  'audio/wav': 'wav',
  'audio/mpeg': 'mp3',
  'audio/ogg': 'ogg',
  'audio/flac': 'flac',
  'audio/aac': 'aac',
  'audio/mp4': 'm4a',
  'audio/webm': 'webm',
  'text/plain': 'txt',
};

/** The one entry of an allow list that stands for several types. */
const anyAudio = 'audio/*';

export const recognizableTypes: readonly string[] = [...Object.keys(fileExtensions), anyAudio];

/** Whether a list such as `Attachments:AllowedMediaTypes` admits a detected type. */
export const isAllowedType = (mediaType: string, allowed: readonly string[]): boolean =>
  allowed.some((entry) => {
    const wanted = entry.toLowerCase();
    return wanted === mediaType || (wanted === anyAudio && mediaType.startsWith('audio/'));
  });
