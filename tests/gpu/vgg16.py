"""VGG-16 on images of 224 x 224."""

import torchvision
import training

options = training.arguments(batch=64)
side = 32 if options.small else 224
training.train(options, torchvision.models.vgg16(weights=None), training.images(1000, side), training.classify)
