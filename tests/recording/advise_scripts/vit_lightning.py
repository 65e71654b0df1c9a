"""A vision transformer with Lightning's Trainer, bf16-mixed. The change in a file given as argument is applied."""
import runpy
import sys

import lightning
import timm
import torch


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = timm.create_model("vit_small_patch16_224", num_classes=100, drop_rate=0.1)
        self.loss = torch.nn.CrossEntropyLoss()

    def training_step(self, batch, index):
        images, labels = batch
        loss = self.loss(self.model(images), labels)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3, weight_decay=0.05)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)]


def main():
    classifier = Classifier()
    if len(sys.argv) > 1:
        runpy.run_path(sys.argv[1])["apply"](classifier)
    data = torch.utils.data.TensorDataset(torch.randn(96, 3, 224, 224), torch.randint(0, 100, (96,)))
    trainer = lightning.Trainer(max_epochs=1, accelerator="gpu", devices=1, precision="bf16-mixed", logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, gradient_clip_val=1.0)
    trainer.fit(classifier, torch.utils.data.DataLoader(data, batch_size=32, shuffle=True))
    print("peak", torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    main()
