import { startFiles } from './files.js';
import { startGpu } from './gpu.js';
import { startPicture } from './picture.js';

startGpu();
startPicture();
startFiles();
